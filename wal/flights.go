package wal

import "sync"

// flights are the flights not answered yet. A flight is answered by the one
// that takes it out: the syncer as a rule, Run when the loops were stopped
// inside the storage engine.
type flights struct {
	mu        sync.Mutex
	open      []*flight
	abandoned bool
}

// add registers an encoded flight before it is written; false means that Run has given
// up and nothing may be written any more.
func (s *flights) add(f *flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.abandoned {
		return false
	}
	s.open = append(s.open, f)
	return true
}

// claim takes a flight out; false means that it was abandoned.
func (s *flights) claim(f *flight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, o := range s.open {
		if o == f {
			s.open = append(s.open[:i], s.open[i+1:]...)
			return true
		}
	}
	return false
}

// abandon takes all flights out, for good.
func (s *flights) abandon() []*flight {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned = true
	open := s.open
	s.open = nil
	return open
}
