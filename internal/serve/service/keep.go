package service

import "time"

// mostKept bounds what is kept of runs that have ended: reports, reasons why there is
// none, and short requests.
const mostKept = 64 << 20

// kept is what is remembered of runs that have ended.
type kept struct {
	ended []string // ids, oldest first
	told  []told   // those of them whose report is kept
	bytes int64    // of these
}

type told struct {
	run   string
	bytes int64
}

// keep remembers r, which has ended, and forgets what is too old for it. The
// caller holds the lock.
func (s *Service) keep(r *Run) {
	k := &s.kept
	k.ended = append(k.ended, r.id)
	if n := r.told() + r.keeps(); n > 0 {
		k.told = append(k.told, told{r.id, n})
		k.bytes += n
	}
	for len(k.ended) > s.opt.Retain {
		id := k.ended[0]
		k.ended = k.ended[1:]
		if old := s.runs[id]; old != nil {
			s.keyed.forget(old)
			delete(s.runs, id)
		}
		if len(k.told) > 0 && k.told[0].run == id {
			k.bytes -= k.told[0].bytes
			k.told = k.told[1:]
		}
	}
	for k.bytes > s.opt.Kept && len(k.told) > 1 {
		t := k.told[0]
		k.told = k.told[1:]
		k.bytes -= t.bytes
		if old := s.runs[t.run]; old != nil {
			s.runs[t.run] = old.forgotten()
		}
	}
}

// A pace is how long runs take lately.
type pace struct{ mean time.Duration }

const (
	soonest = time.Second
	latest  = time.Minute
)

func (p *pace) took(d time.Duration) { p.mean += (d - p.mean) / 8 }

// wait is when to ask again: when half of what waits should be done.
func (p *pace) wait(waiting, workers int) time.Duration {
	d := p.mean * time.Duration(waiting/2+1) / time.Duration(workers)
	return min(max(d.Round(time.Second), soonest), latest)
}
