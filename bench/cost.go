package bench

import (
	"fmt"
	"runtime"
	"syscall"
	"time"
)

// cost is what this process spent: load generator, NATS server and what is measured, since one side is idle while the other runs.
type cost struct {
	cpu      time.Duration // user and system
	switches int64         // of threads
	allocs   uint64
	bytes    uint64 // allocated
}

// spent is the cost of the process so far.
func spent() cost {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return cost{}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return cost{
		cpu:      time.Duration(usage.Utime.Nano() + usage.Stime.Nano()),
		switches: int64(usage.Nvcsw + usage.Nivcsw), //nolint:unconvert // 32 bits on some systems
		allocs:   memory.Mallocs, bytes: memory.TotalAlloc,
	}
}

// add counts what was spent since before.
func (c *cost) add(before cost) {
	now := spent()
	c.cpu += now.cpu - before.cpu
	c.switches += now.switches - before.switches
	c.allocs += now.allocs - before.allocs
	c.bytes += now.bytes - before.bytes
}

// cpuMicros is the CPU time of an ack.
func (s *side) cpuMicros() float64 { return float64(s.cost.cpu.Microseconds()) / float64(s.acked) }

// costs is a line about an ack of a side.
func (s *side) costs(rows int) string {
	n := float64(s.acked)
	low, high := s.spread(Measured.PerSecond)
	return fmt.Sprintf("  %-9s %9.0f rows/s (rounds %.0f to %.0f), p50 %.0f us, p99 %.0f us; an ack takes %.2f us of CPU, %.2f allocations of %.0f bytes, %.2f thread switches, %.4f syncs",
		s.name, s.rate()*float64(rows), low*float64(rows), high*float64(rows), s.p50(), s.p99(),
		s.cpuMicros(), float64(s.cost.allocs)/n, float64(s.cost.bytes)/n, float64(s.cost.switches)/n, float64(s.synced)/n)
}
