package groupsim.oracle;

import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;

import org.apache.kafka.server.util.timer.Timer;
import org.apache.kafka.server.util.timer.TimerTask;
import org.apache.kafka.server.util.timer.TimerTaskEntry;

/**
 * Kafka's timer under the virtual clock. Order: deadline, then order of scheduling, which is what
 * SystemTimer's buckets give for timers of one millisecond. A task that is due is run by
 * {@link #fireNext}, never inside {@link #add}, so that a delay of zero also takes its turn.
 */
final class ManualTimer implements Timer {
    /** One scheduled task. */
    static final class Armed implements Comparable<Armed> {
        final TimerTaskEntry entry;
        final long sequence;

        private Armed(TimerTaskEntry entry, long sequence) {
            this.entry = entry;
            this.sequence = sequence;
        }

        TimerTask task() {
            return entry.timerTask;
        }

        long deadlineMs() {
            return entry.expirationMs;
        }

        @Override
        public int compareTo(Armed other) {
            int order = Long.compare(deadlineMs(), other.deadlineMs());
            return order != 0 ? order : Long.compare(sequence, other.sequence);
        }
    }

    // Cancelled entries stay in the heap until they surface; beyond this many the heap is rebuilt.
    private static final int REBUILD_ABOVE = 4096;

    private final VirtualTime time;
    private PriorityQueue<Armed> heap = new PriorityQueue<>();
    private long nextSequence = 0;
    private int rebuildAt = REBUILD_ABOVE;

    ManualTimer(VirtualTime time) {
        this.time = time;
    }

    @Override
    public void add(TimerTask task) {
        TimerTaskEntry entry = new TimerTaskEntry(task, time.milliseconds() + task.delayMs);
        heap.add(new Armed(entry, nextSequence++));
        if (heap.size() > rebuildAt) {
            heap = new PriorityQueue<>(armed());
            rebuildAt = Math.max(REBUILD_ABOVE, 2 * heap.size());
        }
    }

    /** Deadline of the earliest armed timer, or Long.MAX_VALUE. */
    long nextDeadlineMs() {
        dropCancelled();
        return heap.isEmpty() ? Long.MAX_VALUE : heap.peek().deadlineMs();
    }

    /** The earliest armed timer's task; there must be one. */
    TimerTask next() {
        dropCancelled();
        return heap.element().task();
    }

    /** Runs the earliest armed timer; there must be one. */
    void fireNext() {
        dropCancelled();
        heap.remove().task().run();
    }

    /** The armed timers in the order in which they would fire. */
    List<Armed> armed() {
        List<Armed> result = new ArrayList<>(heap.size());
        for (Armed candidate : heap) {
            if (!candidate.entry.cancelled()) {
                result.add(candidate);
            }
        }
        result.sort(null);
        return result;
    }

    private void dropCancelled() {
        while (!heap.isEmpty() && heap.peek().entry.cancelled()) {
            heap.remove();
        }
    }

    @Override
    public boolean advanceClock(long timeoutMs) {
        throw new UnsupportedOperationException("the driver advances the clock");
    }

    @Override
    public int size() {
        return armed().size();
    }

    @Override
    public void close() {
        heap.clear();
    }
}
