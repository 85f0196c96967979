// runner: reads one experiment file, starts its roles, trains, and writes logs and tables. Read
// this first: every command of the program is a line below, and a file in runner/commands.
#include "io/datasets/import_into.h"
#include "runner/commands/attach_command.h"
#include "runner/commands/check_command.h"
#include "runner/commands/data_command.h"
#include "runner/commands/devices_command.h"
#include "runner/commands/diff_command.h"
#include "runner/commands/evaluate_command.h"
#include "runner/commands/explain_command.h"
#include "runner/commands/export_command.h"
#include "runner/commands/host_command.h"
#include "runner/commands/inspect_command.h"
#include "runner/commands/predict_command.h"
#include "runner/commands/ps_command.h"
#include "runner/commands/reference_command.h"
#include "runner/commands/role_command.h"
#include "runner/commands/run_command.h"
#include "runner/commands/scale_command.h"
#include "runner/commands/stop_command.h"
#include "runner/commands/table_command.h"
#include "runner/launch/launcher.h"
#include "runner/system/command_line.h"
#include "runner/system/interrupts.h"
#include "runner/system/version.h"

namespace runner {

namespace {

class Main {
public:
  explicit Main(CommandLine& commandLine)
      : commandLine(commandLine),
        check(commandLine),
        explain(commandLine),
        run(commandLine),
        ps(commandLine),
        attach(commandLine),
        stop(commandLine),
        scale(commandLine),
        table(commandLine),
        evaluate(commandLine),
        predict(commandLine),
        exportModel(commandLine),
        inspect(commandLine),
        data(commandLine),
        diff(commandLine),
        role(commandLine),
        host(commandLine),
        devices(commandLine),
        reference(commandLine) {}

  kj::MainFunc getMain() {
    kj::MainBuilder builder(commandLine, VERSION,
        "Trains image classifiers: one TOML file describes model, data, kvstore mode and roles.\n"
        "\n"
        "  runner check configs/cifar10_dist_sync.toml\n"
        "  runner run configs/cifar10_dist_sync.toml --set train.epochs=1");
    auto add = [&](kj::StringPtr name, auto& command, kj::StringPtr doc) {
      commandLine.addCommand(name);
      // The command `role` handles signals itself: a launcher ends its roles, and a coordinator
      // that was started by hand records the interruption.
      bool isRole = name == "role";
      auto begin = [isRole, &command]() {
        if (!isRole) {
          endAtInterrupt("\ninterrupted; all processes have ended\n", &io::isImporting);
        }
        return command.getMain();
      };
      builder.addSubCommand(name, kj::mv(begin), doc);
    };
    add("check", check, "report all errors of a file");
    add("explain", explain, "show the resolved plan");
    add("run", run, "run an experiment, and print its result table");
    add("ps", ps, "list the runs in progress");
    add("attach", attach, "follow a run in progress");
    add("stop", stop, "end a run in progress");
    add("scale", scale, "change how many workers a run has");
    add("table", table, "print the table of runs, and write their report");
    add("evaluate", evaluate, "compute the validation figures of a trained network");
    add("predict", predict, "print the most likely classes of images");
    add("export", exportModel, "write a trained network for other programs");
    add("inspect", inspect, "show what a checkpoint or a file of weights holds");
    add("diff", diff, "show where two checkpoints or files of weights differ");
    add("data", data, "show and check what a data set holds");
    add("role", role, "run one role of a job");
    add("host", host, "start roles here for launcher ssh on another machine");
    add("devices", devices, "show what this machine can compute on");
    add("reference", reference, "print the reference of the language of experiment files");
    return builder.build();
  }

private:
  CommandLine& commandLine;
  CheckCommand check;
  ExplainCommand explain;
  RunCommand run;
  PsCommand ps;
  AttachCommand attach;
  StopCommand stop;
  ScaleCommand scale;
  TableCommand table;
  EvaluateCommand evaluate;
  PredictCommand predict;
  ExportCommand exportModel;
  InspectCommand inspect;
  DataCommand data;
  DiffCommand diff;
  RoleCommand role;
  HostCommand host;
  DevicesCommand devices;
  ReferenceCommand reference;
};

}  // namespace
}  // namespace runner

int main(int argc, char* argv[]) {
  // This call comes before the streams are opened, because the program that it starts must see
  // which of them are closed.
  runner::setThreadEnvironment(argv);
  runner::openStandardStreams();
  runner::CommandLine commandLine("runner");
  runner::Main main(commandLine);
  commandLine.run(main.getMain(), argc, argv, runner::LOST_A_PEER_EXIT);
}
