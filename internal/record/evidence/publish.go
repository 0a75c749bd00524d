package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/strictjson"
)

// PublishedFile is where the log remembers how far each sink was told, in the
// folder of its tenant.
const PublishedFile = "audit.published"

// MaxPublished is how many checkpoints a sink is told of at once. A later one
// vouches for all before it, so the newest are told.
const MaxPublished = 1000

// A Stored checkpoint is one that the log keeps.
type Stored struct {
	Size uint64
	Note []byte
}

// A Publisher tells the sinks of one log of its checkpoints. What a sink was not
// told, because it could not be reached, it is told the next time.
type Publisher struct {
	Dir    string // the folder of the tenant
	Origin string // of the log
	Sinks  []Sink
	Now    func() time.Time
}

// Told is how far a sink was told, and what kept it from being told more.
type Told struct {
	Sink string    `json:"sink"`
	Size uint64    `json:"size"` // of the newest checkpoint that it has; 0: none
	At   time.Time `json:"at,omitzero"`
	Err  error     `json:"-"`
}

// published is the content of [PublishedFile].
type published struct {
	Origin string `json:"origin"`
	Sinks  []Told `json:"sinks"`
}

// told is how far a sink was told; the zero Told is not at all.
func (p *published) told(name string) Told {
	for _, t := range p.Sinks {
		if t.Sink == name {
			return t
		}
	}
	return Told{Sink: name}
}

// Told says how far each sink was told.
func (p *Publisher) Told() ([]Told, error) {
	state, err := p.read()
	if err != nil {
		return nil, err
	}
	list := make([]Told, len(p.Sinks))
	for i, s := range p.Sinks {
		list[i] = state.told(s.Name())
	}
	return list, nil
}

// Publish tells each sink of the checkpoints that it does not have, which due
// returns in order of size: those above a size, or the newest alone if that is 0.
// All are told at once, so that one which does not answer keeps no other from
// being told; due is called by several goroutines. Publish waits for another
// publication of this log to end, as long as ctx allows.
func (p *Publisher) Publish(ctx context.Context, due func(above uint64) ([]Stored, error)) ([]Told, error) {
	unlock, err := p.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("publishing checkpoints: %w", err)
	}
	defer unlock()
	state, err := p.read()
	if err != nil {
		return nil, fmt.Errorf("publishing checkpoints: %w", err)
	}
	next := published{Origin: p.Origin, Sinks: make([]Told, len(p.Sinks))}
	var telling sync.WaitGroup
	for i, s := range p.Sinks {
		telling.Go(func() { next.Sinks[i] = p.tell(ctx, s, state.told(s.Name()), due) })
	}
	telling.Wait()
	if slices.ContainsFunc(next.Sinks, func(t Told) bool { return t.Size != state.told(t.Sink).Size }) {
		err = p.write(next)
	}
	return next.Sinks, err
}

// tell brings one sink up to date.
func (p *Publisher) tell(ctx context.Context, s Sink, t Told, due func(above uint64) ([]Stored, error)) Told {
	list, err := due(t.Size)
	if err == nil && len(list) > 0 {
		list = list[max(0, len(list)-MaxPublished):]
		notes := make([][]byte, len(list))
		for i, c := range list {
			notes[i] = c.Note
		}
		err = s.put(ctx, p.Origin, notes)
	}
	if err != nil {
		t.Err = fmt.Errorf("publishing to %s: %w; it is told the next time", s.Name(), err)
		return t
	}
	if len(list) > 0 {
		t.Size, t.At = list[len(list)-1].Size, p.Now().UTC().Truncate(time.Millisecond)
	}
	return t
}

// maxState bounds [PublishedFile].
const maxState = 1 << 20

// read is what is known of the sinks: nothing, when it is of another log.
func (p *Publisher) read() (published, error) {
	none := published{Origin: p.Origin}
	f, err := os.OpenFile(filepath.Join(p.Dir, PublishedFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return none, nil
	}
	if err != nil {
		return none, err
	}
	defer f.Close()
	var state published
	if err := strictjson.Decode(f, maxState, &state); err != nil {
		return none, fmt.Errorf("%s cannot be read: %w; remove it to publish the newest checkpoint anew", f.Name(), err)
	}
	if state.Origin != p.Origin {
		return none, nil
	}
	return state, nil
}

func (p *Publisher) write(state published) error {
	text, err := json.MarshalIndent(state, "", "  ")
	if err != nil {
		return err
	}
	return home.WritePrivate(filepath.Join(p.Dir, PublishedFile), append(text, '\n'))
}

// lockAgain is how long a publication waits before it asks again whether the
// one before it has ended.
const lockAgain = 10 * time.Millisecond

// lock lets one publication of a log go on at a time.
func (p *Publisher) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(p.Dir, PublishedFile+".lock"), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockAgain)
	defer tick.Stop()
	for {
		err := home.Lock(f, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, errors.New("another publication of this log has not ended")
		}
	}
}
