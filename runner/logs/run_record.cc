#include "runner/logs/run_record.h"

#include <kj/vector.h>

#include <algorithm>
#include <utility>

#include "runner/logs/events.h"
#include "runner/logs/log_styles.h"
#include "runner/logs/run_folder.h"
#include "runner/text/numbers.h"

namespace runner {

namespace {

// Fills a record event by event.
class Recorder {
public:
  explicit Recorder(RunRecord& record): record(record) {}

  void take(Event::Reader event) {
    switch (event.which()) {
      case Event::STARTED:
        return takeStarted(event.getStarted());
      case Event::RESIZED:
        return takeResized(event.getResized());
      case Event::AGREED:
        record.instructionSet = kj::str(event.getAgreed().getInstructionSet());
        return;
      case Event::MEMBERSHIP:
        present = event.getMembership().getWorkers();
        if (event.getMembership().getJoined()) closeLinks(event.getIndex());
        return;
      case Event::SPEED:
        return takeSpeed(event.getIndex(), event.getSpeed());
      case Event::TRAINED:
        takeTraffic(event.getIndex(), event.getTrained());
        return takeTrained(event.getTrained());
      case Event::COUNTED:
        return takeCounted(event.getIndex(), event.getCounted().getPushes());
      case Event::VALIDATED:
        return takeValidated(event.getValidated());
      case Event::BEST:
        record.best = RunRecord::Best{event.getBest().getEpoch(), event.getBest().getAccuracy()};
        return;
      case Event::AVERAGED:
        record.averaged =
            RunRecord::Best{event.getAveraged().getEpoch(), event.getAveraged().getAccuracy()};
        return;
      case Event::UNSAVED:
        record.unsaved++;
        record.unsavedText = unsavedText(event.getUnsaved());
        return;
      case Event::FINISHED:
        record.state = RunRecord::FINISHED;
        record.weightsSha256 = kj::str(event.getFinished().getWeightsSha256());
        record.run_s = event.getFinished().getSeconds();
        return;
      case Event::FAILED:
        record.state = RunRecord::FAILED;
        record.reason = kj::str(event.getFailed().getReason());
        return;
      case Event::INTERRUPTED:
        record.state = RunRecord::INTERRUPTED;
        record.reason = kj::str(event.getInterrupted().getReason());
        return;
      case Event::STOPPED:
        record.state = RunRecord::STOPPED;
        record.reason = kj::str(event.getStopped().getReason());
        record.rule = kj::str(event.getStopped().getRule());
        return;
      default:
        return;
    }
  }

  void finish() {
    for (auto& sums: epochs) finish(sums);
    // Workers may be an epoch apart, and the faster one may be first to report an epoch.
    std::sort(epochs.begin(), epochs.end(),
        [](const Sums& a, const Sums& b) { return a.epoch.epoch < b.epoch.epoch; });
    if (record.state != RunRecord::FINISHED) {
      while (epochs.size() > 0 && isPartial(epochs.back())) epochs.removeLast();
    }
    record.epochRecords = KJ_MAP(sums, epochs) {
      return kj::mv(sums.epoch);
    };
    record.speeds = speeds.releaseAsArray();
    record.resizes = resizes.releaseAsArray();
    for (auto& link: closedLinks) addClosed(kj::mv(link));
    record.links = inOrder(links, [](auto& a) { return std::make_pair(a.worker, a.server); });
    record.waits = inOrder(waits, [](auto& a) { return a.worker; });
    record.counted = inOrder(counted, [](auto& a) { return a.server; });
  }

private:
  // An epoch that is not complete. Its means are still sums.
  struct Sums {
    EpochRecord epoch;
    uint present = 0;  // workers of the job when the newest of them reported
    uint validations = 0;
    double validationLoss = 0;
    double validationAccuracy = 0;
    kj::Maybe<TopKFigure> topK;
  };

  Sums& sumsOf(uint epoch) {
    // It is nearly always the newest one.
    for (size_t i = epochs.size(); i-- > 0;) {
      if (epochs[i].epoch.epoch == epoch) return epochs[i];
    }
    auto& sums = epochs.add();
    sums.epoch.epoch = epoch;
    return sums;
  }

  void takeStarted(Event::Started::Reader started) {
    record.name = kj::str(started.getName());
    record.digest = kj::str(started.getDigest());
    record.machine = {
        kj::str(started.getCpu()), started.getCores(), wholeNumber(started.getMemoryBytes())};
    record.instructionSet = kj::str(started.getInstructionSet());
    record.version = kj::str(started.getVersion());
    record.workers = present = started.getWorkers();
    record.servers = started.getServers();
    record.epochs = started.getEpochs();
    record.parameters = started.getParameters();
    record.steps = started.getSteps();
    record.globalBatchSize = started.getGlobalBatchSize();
    auto leftOut = started.getLeftOut();
    record.leftOut = KJ_MAP(sentence, leftOut) {
      return kj::str(sentence);
    };
  }

  void takeResized(Event::Resized::Reader resized) {
    auto facts = resized.getFacts();
    auto sentences = KJ_MAP(fact, facts) {
      return kj::str(fact);
    };
    resizes.add(RunRecord::Resize{resized.getEpoch(), record.workers, resized.getWorkers(),
        record.servers, resized.getServers(), kj::str(resized.getGoesOnFrom()), kj::mv(sentences)});
    record.digest = kj::str(resized.getDigest());
    record.workers = present = resized.getWorkers();
    record.servers = resized.getServers();
    record.epochs = resized.getEpochs();
    record.steps = resized.getSteps();
    record.globalBatchSize = resized.getGlobalBatchSize();
    // Drops the figures of roles that the job no longer has.
    auto keep = [](auto& records, auto&& isThere) {
      auto end = std::remove_if(
          records.begin(), records.end(), [&](auto& each) { return !isThere(each); });
      records.truncate(end - records.begin());
    };
    keep(waits, [&](auto& each) { return each.worker < record.workers; });
    keep(counted, [&](auto& each) { return each.server < record.servers; });
    uint holders = record.servers > 0 ? record.servers : record.workers;
    keep(links, [&](auto& each) { return each.worker < record.workers && each.server < holders; });
  }

  void takeSpeed(uint worker, Event::Speed::Reader speed) {
    speeds.add(SpeedRecord{worker, speed.getEpoch(), speed.getStep(), speed.getGlobalStep(),
        speed.getTrainingS(), speed.getImagesPerS(), speed.getLoss(), speed.getAccuracy(),
        speed.getBatchLoss(), speed.getBatchAccuracy(), present});
  }

  void takeTrained(Event::Trained::Reader trained) {
    auto& sums = sumsOf(trained.getEpoch());
    auto& epoch = sums.epoch;
    sums.present = present;
    uint64_t images = trained.getImages();
    epoch.step = epoch.workers == 0 ? trained.getStep() : kj::min(epoch.step, trained.getStep());
    epoch.globalStep = kj::max(epoch.globalStep, trained.getGlobalStep());
    epoch.workers++;
    epoch.images += images;
    epoch.trainLoss += trained.getLoss() * images;
    epoch.trainAccuracy += trained.getAccuracy() * images;
    epoch.epoch_s += trained.getTimeS();
    if (trained.getTimeS() > 0) epoch.images_per_s += images / trained.getTimeS();
    epoch.verbs.read_s += trained.getReadS();
    epoch.verbs.forward_s += trained.getForwardS();
    epoch.verbs.backward_s += trained.getBackwardS();
    epoch.verbs.push_s += trained.getPushS();
    epoch.verbs.pull_s += trained.getPullS();
    epoch.pushed_bytes += trained.getPushedBytes();
    epoch.pulled_bytes += trained.getPulledBytes();
    epoch.learningRate = trained.getLearningRate();
  }

  template <typename Record, typename Key>
  static kj::Array<Record> inOrder(kj::Vector<Record>& records, Key&& key) {
    std::sort(records.begin(), records.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
    return records.releaseAsArray();
  }

  // Returns the record for which `isIt` holds, or a new one.
  template <typename Record, typename Condition>
  static Record& find(kj::Vector<Record>& records, Condition&& isIt) {
    for (auto& each: records) {
      if (isIt(each)) return each;
    }
    return records.add();
  }

  void takeTraffic(uint worker, Event::Trained::Reader trained) {
    auto& wait = find(waits, [&](auto& each) { return each.worker == worker; });
    wait.worker = worker;
    wait.steps += trained.getSteps();
    wait.pull_s += trained.getPullS();
    uint server = 0;
    for (auto from: trained.getServers()) {
      auto& link =
          find(links, [&](auto& each) { return each.worker == worker && each.server == server; });
      link = {worker, server++, kj::str(from.getTransport()), from.getCalls(),
          from.getPushedBytes(), from.getPulledBytes(), from.getRoundTripsS(),
          from.getRoundTripMaxS(), from.getWaitingMaxBytes(), from.getReconnects()};
    }
  }

  // Keeps what the worker has exchanged so far. The process that takes its place counts from 0.
  void closeLinks(uint worker) {
    auto isOther = [&](const LinkRecord& link) { return link.worker != worker; };
    auto end = std::stable_partition(links.begin(), links.end(), isOther);
    for (auto link = end; link != links.end(); link++) closedLinks.add(kj::mv(*link));
    links.truncate(end - links.begin());
  }

  void addClosed(LinkRecord closed) {
    auto& link = find(links,
        [&](auto& each) { return each.worker == closed.worker && each.server == closed.server; });
    if (link.transport.size() == 0) link.transport = kj::mv(closed.transport);
    link.worker = closed.worker;
    link.server = closed.server;
    link.calls += closed.calls;
    link.pushed_bytes += closed.pushed_bytes;
    link.pulled_bytes += closed.pulled_bytes;
    link.roundTrips_s += closed.roundTrips_s;
    link.roundTripMax_s = kj::max(link.roundTripMax_s, closed.roundTripMax_s);
    link.waitingMax_bytes = kj::max(link.waitingMax_bytes, closed.waitingMax_bytes);
    link.reconnects += closed.reconnects;
  }

  void takeCounted(uint server, Pushes::Reader pushes) {
    auto& record = find(counted, [&](auto& each) { return each.server == server; });
    auto staleness = pushes.getStaleness();
    auto counts = KJ_MAP(count, staleness) {
      return count;
    };
    record = {server, pushes.getPushed(), pushes.getDropped(), kj::mv(counts)};
  }

  void takeValidated(Event::Validated::Reader validated) {
    auto& sums = sumsOf(validated.getEpoch());
    sums.validations++;
    sums.validationLoss += validated.getLoss();
    sums.validationAccuracy += validated.getAccuracy();
    sums.epoch.validationViews = validated.getViews();
    if (validated.hasEndsEarly()) record.endedEarly = kj::str(validated.getEndsEarly());
    if (!validated.hasTopK()) return;
    auto topK = validated.getTopK();
    double before = sums.topK.map([](auto& figure) { return figure.accuracy; }).orDefault(0);
    sums.topK = TopKFigure{topK.getK(), before + topK.getAccuracy()};
  }

  // True while a worker that is still in the job has not reported the epoch. A worker that joined
  // after the epoch never reports it.
  bool isPartial(const Sums& sums) const {
    return sums.epoch.workers < kj::min(sums.present, present);
  }

  static void finish(Sums& sums) {
    auto& epoch = sums.epoch;
    if (epoch.images > 0) {
      epoch.trainLoss /= epoch.images;
      epoch.trainAccuracy /= epoch.images;
    }
    if (epoch.workers > 0) {
      epoch.epoch_s /= epoch.workers;
      auto& verbs = epoch.verbs;
      for (auto verb:
          {&verbs.read_s, &verbs.forward_s, &verbs.backward_s, &verbs.push_s, &verbs.pull_s}) {
        *verb /= epoch.workers;
      }
    }
    if (sums.validations > 0) {
      epoch.validationLoss = sums.validationLoss / sums.validations;
      epoch.validationAccuracy = sums.validationAccuracy / sums.validations;
      epoch.topK = sums.topK;
      KJ_IF_MAYBE(figure, epoch.topK) figure->accuracy /= sums.validations;
    }
  }

  RunRecord& record;
  kj::Vector<Sums> epochs;
  kj::Vector<SpeedRecord> speeds;
  kj::Vector<RunRecord::Resize> resizes;
  kj::Vector<LinkRecord> links;
  kj::Vector<LinkRecord> closedLinks;  // of processes in whose place others have joined
  kj::Vector<WaitRecord> waits;
  kj::Vector<CountedRecord> counted;
  uint present = 1;  // workers, after the latest event
};

}  // namespace

kj::String numbersText(const RunRecord::Resize& resize) {
  kj::Vector<kj::String> changes;
  auto add = [&](uint before, uint now, kj::StringPtr role) {
    if (before != now) changes.add(kj::str(counted(now, role), " in place of ", before));
  };
  add(resize.workersBefore, resize.workers, "worker");
  add(resize.serversBefore, resize.servers, "server");
  return kj::strArray(changes, " and ");
}

kj::String factsText(const RunRecord::Resize& resize) {
  return resize.facts.size() == 0 ? kj::str() : kj::str(": ", kj::strArray(resize.facts, "; "));
}

namespace {

// `eachOf` calls its argument with the events of the run, and returns RunRecord::damage.
RunRecord readRecord(kj::StringPtr folder,
    kj::FunctionParam<kj::String(kj::FunctionParam<void(Event::Reader)>)> eachOf) {
  RunRecord record;
  record.folder = kj::str(folder);
  Recorder recorder(record);
  record.damage = eachOf([&](Event::Reader event) { recorder.take(event); });
  recorder.finish();
  if (record.state == RunRecord::UNFINISHED) {
    record.reason = kj::str("it is still running, or its processes were killed");
  }
  return record;
}

}  // namespace

RunRecord readRunRecord(kj::StringPtr folder) {
  return readRecord(folder, [&](auto take) {
    eachEvent({kj::str(folder)}, kj::mv(take));
    return kj::String();
  });
}

RunRecord readRecordToResume(kj::StringPtr folder) {
  return readRecord(
      folder, [&](auto take) { return eachEventUntilDamage({kj::str(folder)}, kj::mv(take)); });
}

kj::Maybe<kj::String> damageText(const RunRecord& record) {
  if (record.damage.size() == 0 || record.state != RunRecord::UNFINISHED) return nullptr;
  return kj::str(record.damage,
      ", so it is not known whether the run has finished. It continues from its newest checkpoint, "
      "or begins again");
}

}  // namespace runner
