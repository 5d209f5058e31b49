package groupsim.oracle;

import java.util.ArrayDeque;
import java.util.Deque;

import org.apache.kafka.coordinator.common.runtime.CoordinatorEvent;
import org.apache.kafka.coordinator.common.runtime.CoordinatorEventProcessor;

/**
 * Kafka's event processor without threads: one queue for all partitions, emptied by
 * {@link #drain()}. Kafka keeps a queue per partition and processes each in order; a single queue
 * is one of the orders its threads may produce, and the only one that is repeatable.
 */
final class EventQueue implements CoordinatorEventProcessor {
    private final Deque<CoordinatorEvent> events = new ArrayDeque<>();

    @Override
    public void enqueueLast(CoordinatorEvent event) {
        events.addLast(event);
    }

    @Override
    public void enqueueFirst(CoordinatorEvent event) {
        events.addFirst(event);
    }

    /** Runs events until none is left, failures as MultiThreadedEventProcessor treats them. */
    void drain() {
        CoordinatorEvent event;
        while ((event = events.pollFirst()) != null) {
            try {
                event.run();
            } catch (Throwable failure) {
                event.complete(failure);
            }
        }
    }

    int size() {
        return events.size();
    }

    @Override
    public void close() {
        // The queue is drained after every command; nothing is left to reject.
    }
}
