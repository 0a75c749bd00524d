package journal

import "sync"

// A Group syncs the journals that share it together. Who comes first syncs;
// what comes meanwhile is brought to the disk by one of those that came, all of
// it at once, and so on: the longer a sync takes, the more the next one carries.
// Nobody waits for others to come.
//
// Journals that are alone sync their own files, unless the group is resident.
// Several have what is new of them written into one group file beside them, for one write and one sync cost
// less than one of each for every file. The files of the journals are synced
// when the group file is full, or are made whole from it by [Replay] when the
// process did not get to that.
//
// One Group serves a process. Its zero value is ready.
type Group struct {
	// Resident says that the process has many short runs, one after another: what
	// is new of a journal goes to the group file even if it is alone. That file
	// has its name and its blocks on disk already, which a new journal has not.
	Resident bool

	mu    sync.Mutex
	busy  bool       // under mu: somebody syncs
	queue []*Journal // under mu: who waits for the next sync
	spare []*Journal // under mu

	files map[string]*groupFile // by directory; of whoever syncs
	limit int64                 // of a group file; 0: maxGroup
}

// A seat is a journal's place in its group. It is the journal's own, but for
// while it waits.
type seat struct {
	wake    chan bool // says that the journal is synced (false) or has to sync (true)
	err     error
	carried *groupFile // that has what is new of the journal; nil: its own file
}

// sync brings j to the disk.
func (g *Group) sync(j *Journal) error {
	g.mu.Lock()
	g.queue = append(g.queue, j)
	if g.busy {
		g.mu.Unlock()
		if lead := <-j.seat.wake; !lead {
			return j.seat.err
		}
		g.mu.Lock()
	}
	g.busy = true
	batch := g.queue
	g.queue = g.spare[:0]
	g.mu.Unlock()

	g.commit(batch)
	for _, other := range batch {
		if other != j {
			other.seat.wake <- false
		}
	}
	g.pass(batch)
	return j.seat.err
}

// pass has the first of those that have come meanwhile sync.
func (g *Group) pass(batch []*Journal) {
	g.mu.Lock()
	clear(batch)
	g.spare = batch
	if g.busy = len(g.queue) > 0; !g.busy {
		g.mu.Unlock()
		return
	}
	next := g.queue[0]
	g.mu.Unlock()
	next.seat.wake <- true
}

// commit brings each journal of a batch to the disk, and leaves how that went
// in its seat. What cannot be done together is done one by one.
func (g *Group) commit(batch []*Journal) {
	if len(batch) == 1 && !g.Resident {
		g.alone(batch[0])
		return
	}
	for _, j := range batch {
		if f := g.file(j); f == nil || !f.add(j) {
			j.seat.carried = nil
		} else {
			j.seat.carried = f
		}
	}
	for _, f := range g.files {
		f.flush()
	}
	for _, j := range batch {
		switch f := j.seat.carried; {
		case f == nil || f.err != nil:
			g.alone(j)
		default:
			j.seat.err = nil
		}
	}
}

// alone syncs a journal's own file, which then needs no group file any more.
func (g *Group) alone(j *Journal) {
	if j.seat.err = j.syncAlone(); j.seat.err != nil {
		return
	}
	if f := g.files[j.dir()]; f != nil {
		delete(f.lacking, j.run())
	}
}

// file is the group file of j's directory; nil when there can be none.
func (g *Group) file(j *Journal) *groupFile {
	dir := j.dir()
	f, made := g.files[dir]
	if made {
		return f
	}
	if g.files == nil {
		g.files = map[string]*groupFile{}
	}
	f, err := newGroupFile(dir, j.disk, j.secret)
	if err != nil {
		return nil // asked again at the next sync of several
	}
	if g.limit > 0 {
		f.limit = g.limit
	}
	g.files[dir] = f
	return f
}

// Close syncs the journals that group files stand for, and removes those. The
// group is empty again.
func (g *Group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var first error
	for dir, f := range g.files {
		if err := f.close(); err != nil && first == nil {
			first = err
		}
		delete(g.files, dir)
	}
	return first
}
