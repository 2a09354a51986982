// The program as a user meets it: what it prints where, and how it exits.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/program.hpp"

using namespace fourfold;
using nlohmann::json;

namespace {

// A run's JSON without what the machine decides.
json run_json(const std::string& arguments) {
    const Finished run = run_program("run --json " + arguments);
    REQUIRE_MESSAGE(run.exit_code == 0, run.err);
    json parsed = json::parse(run.out);
    parsed.erase("simulator");
    return parsed;
}

void check_refused(const std::string& arguments, const std::string& message) {
    const Finished run = run_program(arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    CHECK(run.err == message);
}

}  // namespace

TEST_CASE("Wrong usage is answered with what was meant, on standard error, and exit 2") {
    const std::string help = "\nSee fourfold --help.\n";
    check_refused("rnu x.yaml",
                  "fourfold: error: unknown command 'rnu'; did you mean 'run'?" + help);
    check_refused("", "fourfold: error: A subcommand is required" + help);
    check_refused("run", "fourfold: error: SCENARIO is required" + help);
    check_refused("curves idel --out x",
                  "fourfold: error: unknown command 'idel'; did you mean 'idle'?" + help);
    check_refused("run scenarios/quickstart.yaml --jsno",
                  "fourfold: error: unknown option '--jsno'; did you mean '--json'?" + help);
    check_refused("curves idle", "fourfold: error: --out is required" + help);
    check_refused("list devics",
                  "fourfold: error: unknown list 'devics'; did you mean 'devices'?\n");
    check_refused("run scenarios/quickstart.yaml --set batch.micro",
                  "--set batch.micro: error: not of the form path=value, as in batch.micro=2\n");
    check_refused("run scenarios/quickstart.yaml --set batch.mirco=2",
                  "--set batch.mirco=2:1:7: error: unknown key 'mirco'; did you mean 'micro'?\n"
                  "    batch.mirco=2\n"
                  "          ^\n");
    check_refused("run scenarios/quickstart.yaml --network flow",
                  "--set network=flow:1:9: error: unknown network model 'flow'; did you mean "
                  "'flows'?\n"
                  "    network=flow\n"
                  "            ^\n");
    check_refused("run nope.yaml", "nope.yaml: error: no such file; check its name and folder\n");
    check_refused("run --trace t.json scenarios/quickstart.yaml scenarios/course/ring.yaml",
                  "fourfold: error: --trace: writes one run, but there are 2 scenarios\n");
    check_refused("init scenarios/quickstart.yaml",
                  "scenarios/quickstart.yaml: error: is already there and is not overwritten\n");
}

TEST_CASE("Wrong values of collective and curves are named by their option") {
    const std::string rest = " --bandwidth 25GB/s --latency 5us";
    check_refused("collective all_reduce --ranks 8 --bytes 64" + rest,
                  "fourfold: error: --bytes: '64' has no unit; write for example '64 MiB'\n");
    check_refused(
        "collective all_reduce --ranks 0 --bytes 64MiB" + rest,
        "fourfold: error: --ranks: '0' is no number or range from 1 to 1048576, as in 8 or "
        "1..256\n");
    check_refused("collective all_redce --ranks 8 --bytes 64MiB" + rest,
                  "fourfold: error: unknown collective 'all_redce'; did you mean 'all_reduce'?\n");
    const std::string nodes = " --node-bandwidth 300GB/s --node-latency 1us";
    check_refused("collective all_reduce --ranks 6 --bytes 64MiB --per-node 4" + nodes + rest,
                  "fourfold: error: per-node: 6 ranks are no whole number of nodes of 4\n");
    check_refused("collective all_reduce --ranks 6 --bytes 64MiB --per-node 3" + rest,
                  "fourfold: error: --per-node requires --node-bandwidth\nSee fourfold --help.\n");
    check_refused("collective all_reduce --ranks 6 --bytes 64MiB --per-node 2,3" + nodes + rest,
                  "fourfold: error: --per-node: one number, as in 8\n");
    check_refused("collective all_reduce --ranks 8 --bytes 64MiB --quantum 4B" + rest,
                  "fourfold: error: --quantum: a quantum of 4 B makes too many pieces; at least "
                  "1 KiB\n");
    check_refused("curves idle --out x --schedule 1f1b,gpip",
                  "fourfold: error: --schedule: unknown schedule 'gpip'; did you mean 'gpipe'?\n");
    check_refused("curves idle --out x --micro-batches 5..2",
                  "fourfold: error: --micro-batches: '5..2' is no number or range from 1 to "
                  "1048576, as in 8 or 1..256\n");
    check_refused(
        "curves ring --out x --algorithm ring,",
        "fourfold: error: --algorithm: 'ring,' has an empty name; write names as in a,b\n");
}

TEST_CASE("run prints jobs beside each other: alone, together and the slowdown") {
    const Folder folder;
    const std::string common =
        "model: {layers: 8, hidden: 1024, heads: 8, ffn: 4096, vocab: 1024, sequence: 128}\n"
        "cluster:\n"
        "  {device: a100-sxm-80gb, nodes: 4, devices_per_node: 2,\n"
        "   node: {shape: switch, bandwidth: 300 GB/s, latency: 1.5 us},\n"
        "   fabric: {shape: fat_tree, bandwidth: 25 GB/s, latency: 2.5 us, leaf_ports: 4,\n"
        "            oversubscription: 4}}\n";
    write_text(folder.file("other.yaml"), common + "batch: {global: 8}\nnetwork: messages\n");
    const std::string jobs = common +
                             "name: shared\nbatch: {global: 16}\njobs:\n"
                             "  - {name: a, nodes: [0, 2]}\n"
                             "  - {name: b, devices: [2..3, 6, 7], scenario: other.yaml}\n";
    write_text(folder.file("jobs.yaml"), jobs);
    for (const std::string network : {"flows", "messages"}) {
        const json run = run_json("--audit --network " + network + " " + folder.file("jobs.yaml"));
        CHECK(run["name"] == "shared");
        REQUIRE(run["jobs"].size() == 2);
        CHECK(run["jobs"][0]["name"] == "a");
        CHECK(run["jobs"][0]["micro_batches"] == 4);
        CHECK(run["jobs"][1]["micro_batches"] == 2);
        for (const json& job : run["jobs"]) {
            CHECK(job["network"] == network);
            CHECK(job["devices"] == 4);
            CHECK(job["slowdown"] > 1);
            CHECK(job["step_time_s"].get<double>() / job["alone_step_time_s"].get<double>() ==
                  doctest::Approx(job["slowdown"].get<double>()).scale(0));
        }
    }
    const Finished text = run_program("run " + folder.file("jobs.yaml"));
    CHECK(text.exit_code == 0);
    CHECK(text.out.starts_with("shared\n  job  devices"));
    const std::string file = folder.file("jobs.yaml");
    check_refused("traffic " + file,
                  "fourfold: error: shared: several jobs; `fourfold run` prints "
                  "what each one does\n");
    check_refused(
        "run " + file + " " + folder.file("other.yaml"),
        "fourfold: error: shared: a file of jobs is run alone, not beside other scenarios\n");
}

TEST_CASE("collective --routing ecmp is slower on a fat tree where messages collide") {
    const auto time = [](const std::string& routing) {
        const Finished run = run_program(
            "collective all_to_all --algorithm direct --ranks 32 --bytes 64MiB --shape fat_tree "
            "--leaf-ports 4 --bandwidth 25GB/s --latency 5us --json --routing " +
            routing);
        REQUIRE_MESSAGE(run.exit_code == 0, run.err);
        CHECK(json::parse(run.out)["routing"] == routing);
        return json::parse(run.out)["time_s"].get<double>();
    };
    CHECK(time("ecmp") > time("balanced"));
    check_refused(
        "collective all_reduce --ranks 4 --bytes 1MiB --bandwidth 25GB/s --latency 5us --routing "
        "ecpm",
        "fourfold: error: --routing: unknown routing 'ecpm'; did you mean 'ecmp'?\n");
}

TEST_CASE("a step whose links fail until a device is cut off ends with 1 and says who") {
    const Finished run = run_program(
        "run scenarios/quickstart.yaml --network messages --set "
        "'perturb=[{fail_link: {from: node0.device0, to: leaf0}, at: 100 ms}, "
        "{fail_link: {from: node0.device0, to: node0.switch}, at: 110 ms}]'");
    CHECK(run.exit_code == 1);
    CHECK(run.out.empty());
    CHECK(run.err ==
          "quickstart: error: the link node0.device0 -> node0.switch has failed, and no route is "
          "left from 'node0.device0' to 'node0.device1' for a message of device 0\n");
}

TEST_CASE("flows are told that a quantum is nothing to them") {
    const std::string arguments =
        "collective all_reduce --ranks 8 --bytes 64MiB --bandwidth 25GB/s --latency 5us ";
    const Finished plain = run_program(arguments),
                   given = run_program(arguments + "--quantum 4MiB");
    CHECK(given.exit_code == 0);
    CHECK(given.out == plain.out);
    CHECK(given.err ==
          "fourfold: warning: --quantum: the quantum changes nothing: flows share links from byte "
          "to byte, messages wait\n");
    CHECK(run_program(arguments + "--quantum 4MiB --network messages").err.empty());
}

TEST_CASE("collective takes every parameter of every shape") {
    const std::string all_reduce =
        "collective all_reduce --bytes 64MiB --bandwidth 25GB/s --latency 5us ";
    check_refused(all_reduce + "--ranks 2 --shape sites --wan-bandwidth 1 --wan-latency 10ms",
                  "fourfold: error: --wan-bandwidth: '1' has no unit; write for example '25 GB/s'\n"
                  "See fourfold --help.\n");
    check_refused(all_reduce + "--ranks 8 --shape fat_tree --pod-leaves 4",
                  "fourfold: error: pod_leaves: 'pod_leaves' is for 3 levels; add 'levels: 3' or "
                  "remove it\n");
    check_refused(all_reduce + "--ranks 8 --shape rails --levels 3",
                  "fourfold: error: levels: shape 'rails' does not take 'levels'\n");
    // Two steps of 32 MiB at 1 GB/s, 33.554432 ms each, over 5 us, 10 ms and 5 us.
    const Finished run = run_program(all_reduce +
                                     "--ranks 2 --shape sites --wan-bandwidth 1GB/s "
                                     "--wan-latency 10ms --json");
    REQUIRE(run.exit_code == 0);
    CHECK(json::parse(run.out)["time_s"].get<double>() ==
          doctest::Approx(2 * (0.033554432 + 0.01001)).scale(0).epsilon(1e-9));
}

TEST_CASE("init writes a scenario that runs") {
    const Folder folder;
    const std::string file = folder.file("my.yaml");
    const Finished init = run_program("init " + file);
    CHECK(init.exit_code == 0);
    CHECK(init.out == "wrote " + file + "; next: fourfold run " + file + "\n");
    const Finished run = run_program("run --audit " + file);
    CHECK(run.exit_code == 0);
    CHECK(run.err.empty());
    CHECK(run.out.starts_with("quickstart\n"));
    // A cable to the node's switch and one to the only leaf for each device, both directions.
    CHECK(run_program("check " + file).out == "quickstart: ok, 8 devices, 32 links\n");
}

TEST_CASE("run --json has the contract's keys, and its fractions of time sum to one") {
    const json run = run_json("scenarios/quickstart.yaml");
    for (const char* key :
         {"step_time_s", "tokens_per_second", "model_flops_per_step", "flops_convention", "mfu",
          "hfu", "devices", "idle_fraction", "bubble_fraction", "time", "traffic"}) {
        CHECK_MESSAGE(run.contains(key), key);
    }
    double sum = 0;
    for (const auto& [name, fraction] : run["time"].items()) sum += fraction.get<double>();
    CHECK(std::abs(sum - 1) < 1e-9);
    CHECK(run["idle_fraction"].get<double>() ==
          doctest::Approx(1 - run["time"]["compute"].get<double>()));
    // 16 sequences of 2,048 tokens
    CHECK(run["tokens_per_second"].get<double>() ==
          doctest::Approx(16 * 2048 / run["step_time_s"].get<double>()));
    std::set<std::string> axes;
    for (const json& row : run["traffic"]) axes.insert(row["axis"].get<std::string>());
    CHECK(axes ==
          std::set<std::string>{"data", "norm", "pipeline", "sharding", "tensor", "vocabulary"});
}

TEST_CASE("Two runs of a scenario print the same bytes, in both link models") {
    for (const std::string network : {"flows", "messages"}) {
        const std::string arguments = "scenarios/quickstart.yaml --network " + network;
        CHECK(run_json(arguments) == run_json(arguments));
    }
}

TEST_CASE("Both link models agree on the quickstart within five percent") {
    const double flows = run_json("scenarios/quickstart.yaml")["step_time_s"];
    const double messages = run_json("scenarios/quickstart.yaml --network messages")["step_time_s"];
    CHECK(messages == doctest::Approx(flows).epsilon(0.05));
}

TEST_CASE("A what-if file prints its entries beside the base, with what changes") {
    const Folder folder;
    write_text(folder.file("base.yaml"),
               read_text(FOURFOLD_SOURCE_DIR "/scenarios/quickstart.yaml"));
    write_text(folder.file("what_if.yaml"),
               "base: base.yaml\n"
               "what_if:\n"
               "  - {name: slow device, set: {perturb: [{slow_device: 3, factor: 2}]}}\n"
               "  - {name: the same, set: {batch.micro: 1}}\n");
    const Finished run = run_program("run " + folder.file("what_if.yaml"));
    REQUIRE(run.exit_code == 0);
    CHECK(run.out.find("  quickstart ") != std::string::npos);
    CHECK(run.out.find("  slow device ") != std::string::npos);
    CHECK(run.out.find("+0.0 %") != std::string::npos);
    CHECK(run.out.find("nothing changes") != std::string::npos);
    const Finished as_json = run_program("run --json " + folder.file("what_if.yaml"));
    const json all = json::parse(as_json.out);
    REQUIRE(all.size() == 3);
    CHECK(all[1]["step_time_s"].get<double>() > all[0]["step_time_s"].get<double>());
    CHECK(all[2]["step_time_s"] == all[0]["step_time_s"]);
}

TEST_CASE("The quickstart's trace has the same spans, lanes without overlap and matched flows") {
    const Folder folder;
    const std::string file = folder.file("trace.json");
    const Finished run = run_program("run scenarios/quickstart.yaml --json --trace " + file);
    REQUIRE(run.exit_code == 0);
    const json trace = json::parse(read_text(file));
    const double step = json::parse(run.out)["step_time_s"];

    std::map<std::pair<int, int>, std::vector<std::pair<std::int64_t, std::int64_t>>> lanes;
    std::set<std::int64_t> sent, received;
    std::size_t kernels = 0;
    std::int64_t last = 0;
    for (const json& event : trace["traceEvents"]) {
        const std::string phase = event["ph"];
        if (phase == "X" && event.value("cat", "") == "kernel") {
            ++kernels;
            const std::int64_t begin = event["args"]["begin_ps"], end = event["args"]["end_ps"];
            lanes[{event["pid"], event["tid"]}].emplace_back(begin / 1000, end / 1000);
            CHECK(std::llround(event["ts"].get<double>() * 1000) == begin / 1000);
            CHECK(std::llround(event["dur"].get<double>() * 1000) == end / 1000 - begin / 1000);
            last = std::max(last, end);
        }
        if (phase == "s") CHECK(sent.insert(event["id"].get<std::int64_t>()).second);
        if (phase == "f") CHECK(received.insert(event["id"].get<std::int64_t>()).second);
    }
    CHECK(sent == received);
    CHECK(sent.size() == 8 * 2 * 4);  // micro-batches, directions, pairs of devices
    CHECK(kernels == json::parse(run.out)["simulator"]["tasks"].get<std::size_t>());
    CHECK(static_cast<double>(last) * 1e-12 == doctest::Approx(step).epsilon(1e-12));
    for (auto& [lane, spans] : lanes) {
        std::sort(spans.begin(), spans.end());
        for (std::size_t i = 1; i < spans.size(); ++i) CHECK(spans[i].first >= spans[i - 1].second);
    }
}

TEST_CASE("curves idle writes a row for every combination, refused ones with the reason") {
    const Folder folder;
    const Finished run = run_program("curves idle --out " + folder.file("c") +
                                     " --schedule 1f1b,interleaved_1f1b --pipeline 4 --chunks 1,2"
                                     " --micro-batches 8,9");
    CHECK((run.exit_code == 0 || run.exit_code == 4));  // 4: drawn where gnuplot is
    const std::string csv = read_text(folder.file("c/idle.csv"));
    CHECK(
        csv.starts_with("schedule,pipeline,chunks,micro_batches,makespan_s,ideal_s,idle_fraction,"
                        "closed_form_idle,difference,max_rank_span_s,refused\n"
                        // (8 + 3) (1 + 2) ms of which 3/11 are idle
                        "1f1b,4,1,8,0.033,0.024,0.272727272727,0.272727272727,0,0.033,\n"));
    // 57 units of half a millisecond (schedules' golden examples)
    CHECK(csv.find("interleaved_1f1b,4,2,8,0.0285,0.024,0.157894736842,0.157894736842,0,") !=
          std::string::npos);
    CHECK(std::count(csv.begin(), csv.end(), '\n') == 9);
}

TEST_CASE("list shows every catalog") {
    const Finished run = run_program("list");
    CHECK(run.exit_code == 0);
    for (const char* name : {"fat_tree", "a100-sxm-80gb", "nvlink3", "gpt3-175b", "zb1p", "tree"}) {
        CHECK_MESSAGE(run.out.find(name) != std::string::npos, name);
    }
}

// tests/golden/shapes.txt is for reading; FOURFOLD_UPDATE_GOLDEN=1 writes it anew.
TEST_CASE("list shapes prints each with what it takes, and its picture") {
    const std::string golden = FOURFOLD_SOURCE_DIR "/tests/golden/shapes.txt";
    const Finished run = run_program("list shapes");
    CHECK(run.exit_code == 0);
    if (std::getenv("FOURFOLD_UPDATE_GOLDEN") != nullptr) write_text(golden, run.out);
    CHECK(run.out == read_text(golden));
}

TEST_CASE("topology prints counts, diameter, bisection and a route") {
    const Finished run = run_program(
        "topology scenarios/topologies/two_sites.yaml --set cluster.node.efficiency=1 "
        "--set cluster.fabric.efficiency=0.8");
    CHECK(run.exit_code == 0);
    CHECK(run.out ==
          "two sites\n"
          "  32 devices in 4 nodes, 6 switches, 130 links\n"
          "\n"
          "  vertices\n"
          "    32  node0.device0 .. node3.device7\n"
          "     4  node0.switch .. node3.switch\n"
          "     2  site0 .. site1\n"
          "\n"
          "  links, one direction each\n"
          "                                       bandwidth    usable  latency\n"
          "    32  node*.device* -> node*.switch   450 GB/s  450 GB/s  1.13 us\n"
          "    32  node*.switch -> node*.device*   450 GB/s  450 GB/s  1.13 us\n"
          "    32  node*.device* -> site*           50 GB/s   40 GB/s   7.5 us\n"
          "    32  site* -> node*.device*           50 GB/s   40 GB/s   7.5 us\n"
          "     2  site* -> site*                  100 GB/s  100 GB/s    10 ms\n"
          "\n"
          "  diameter   3 links, 10.02 ms; the longest of all shortest routes\n"
          "  bisection  100 GB/s usable; the least cut between ranks 0 .. 15 and the others, by "
          "maximum flow\n"
          "\n"
          "  route from rank 0 to rank 31\n"
          "                            bandwidth    usable   latency\n"
          "    node0.device0 -> site0    50 GB/s   40 GB/s    7.5 us\n"
          "    site0 -> site1           100 GB/s  100 GB/s     10 ms\n"
          "    site1 -> node3.device7    50 GB/s   40 GB/s    7.5 us\n"
          "    3 links                             40 GB/s  10.02 ms\n");
}

TEST_CASE("topology --json says the same in SI units, and takes ranks or names") {
    const Finished run = run_program(
        "topology scenarios/topologies/two_sites.yaml --json --route node0.device1,2 "
        "--set cluster.node.efficiency=0.5");
    REQUIRE(run.exit_code == 0);
    const json found = json::parse(run.out);
    CHECK(found["devices"] == 32);
    CHECK(found["nodes"] == 4);
    CHECK(found["switches"] == 6);
    CHECK(found["links"] == 130);
    CHECK(found["link_groups"].size() == 5);
    CHECK(found["link_groups"][0]["usable_bytes_per_s"] == 225'000'000'000);
    CHECK(found["diameter"]["links"] == 3);
    CHECK(found["diameter"]["latency_s"].get<double>() == doctest::Approx(0.010015).scale(0));
    CHECK(found["diameter"]["exact"] == true);
    CHECK(found["bisection_bytes_per_s"] == 100'000'000'000);
    CHECK(found["route"]["from_rank"] == 1);
    CHECK(found["route"]["to_rank"] == 2);
    CHECK(found["route"]["links"][0]["to"] == "node0.switch");
    CHECK(found["route"]["usable_bytes_per_s"] == 225'000'000'000);
    CHECK(found["route"]["latency_s"].get<double>() == doctest::Approx(2.26e-6).scale(0));
}

TEST_CASE("A route that cannot be is answered with what can") {
    const std::string topology = "topology scenarios/topologies/two_sites.yaml --route ";
    const std::string error = "fourfold: error: --route: ";
    check_refused(topology + "3", error + "'3' is not two ranks, as in 0,9\n");
    check_refused(topology + "0,1,2", error + "'0,1,2' is not two ranks, as in 0,9\n");
    check_refused(topology + "0,32", error + "no rank 32; ranks are 0 to 31\n");
    check_refused(topology + "7,node0.device7",
                  error + "a route needs two ranks that differ, as in 0,9\n");
    check_refused(topology + "0,site1",
                  error + "'site1' is a switch; a route leads from device to device\n");
    check_refused(topology + "0,node0.devise1",
                  error + "unknown vertex 'node0.devise1'; did you mean 'node0.device1'?\n");
    check_refused("topology --dot x.dot scenarios/quickstart.yaml scenarios/course/ring.yaml",
                  "fourfold: error: --dot: draws one cluster, but there are 2 scenarios\n");
}

TEST_CASE("topology --dot writes a graph with a line for each cable") {
    const Folder folder;
    const std::string file = folder.file("sites.dot");
    const Finished run =
        run_program("topology scenarios/topologies/two_sites.yaml --dot '" + file + "'");
    REQUIRE(run.exit_code == 0);
    const std::string dot = read_text(file);
    CHECK(dot.starts_with("digraph topology {\n"));
    CHECK(dot.ends_with("}\n"));
    std::size_t lines = 0;
    for (std::size_t at = 0; (at = dot.find("dir=none", at)) != std::string::npos; ++at) ++lines;
    CHECK(lines == 130 / 2);
    CHECK(dot.find("[label=\"100 GB/s\\n10 ms\", dir=none]") != std::string::npos);
}

TEST_CASE("a device that is alone has no route") {
    const Finished run = run_program(
        "topology scenarios/quickstart.yaml --set cluster.nodes=1 "
        "--set cluster.devices_per_node=1 --set 'parallel={data: 1}'");
    CHECK(run.exit_code == 0);
    CHECK(run.out.find("1 device in 1 node, 0 switches, 0 links") != std::string::npos);
    CHECK(run.out.find("route") == std::string::npos);
}

TEST_CASE("Every shipped topology runs, in both link models alike where no link is shared") {
    const Finished table = run_program(
        "run --json scenarios/topologies/rails.yaml scenarios/topologies/two_sites.yaml "
        "scenarios/topologies/torus.yaml scenarios/topologies/dragonfly.yaml "
        "scenarios/topologies/three_levels.yaml scenarios/topologies/nvl72.yaml");
    REQUIRE_MESSAGE(table.exit_code == 0, table.err);
    for (const json& each : json::parse(table.out)) CHECK(each["step_time_s"].get<double>() > 0);
}
