package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/effect/jail"
	"runloop.dev/rlp/launcher/run"
)

// A Narrowing is a file that narrows the run: what it says may change between turns.
// One that the launch did not find may come and go; one that it found may not go,
// for then nobody could tell what it says.
type Narrowing struct {
	name  string // of its layer
	Path  string
	data  []byte // as the launch read it; nil: it was not there
	layer *caps.Layer
	floor bool // what it says is what untrusted content leaves, and not what the run holds
	parse func(data []byte) (*caps.Layer, []policy.Finding)
}

// NarrowedBy remembers a file that the launch read, or looked for in vain.
func (c *Composition) NarrowedBy(n Narrowing) { c.Narrowings = append(c.Narrowings, n) }

// A watcher reads the narrowings of a run again. What it knows of them changes only
// when all of them could be read and make sense.
type watcher struct {
	home       home.Home
	agent      string
	resolve    func([]*caps.Layer) ([]*caps.Layer, error)
	narrowings []Narrowing
	now        []reading
	clock      func() time.Time
}

// A reading is what is known of one narrowing.
type reading struct {
	state FileState // before it was read; the zero one when that may be another's
	data  []byte    // nil: it is not there
	layer *caps.Layer
}

func newWatcher(c *Composition) *watcher {
	w := &watcher{home: c.Home, agent: c.Bundle.Manifest.Agent.String(), narrowings: c.Narrowings, clock: time.Now}
	for _, s := range c.Narrowings {
		w.now = append(w.now, reading{data: s.data, layer: s.layer})
	}
	w.resolve = func(layers []*caps.Layer) ([]*caps.Layer, error) {
		p, _, err := run.Canonical(run.Policy{Layers: layers}, run.Resolvers{
			Files:    c.canonicalAgain,
			Programs: c.CanonicalProgram,
		})
		return p.Layers, err
	}
	return w
}

// canonicalAgain is where a path of the operator's leads while the run goes on.
// Where the agent may have put something in its way since, it is as written: a
// link there leads nowhere, and nothing that an agent makes of its own folders
// keeps the operator from narrowing it.
func (c *Composition) canonicalAgain(written string) (jail.Resolved, error) {
	r, err := jail.Canonical(written)
	if err != nil || !c.Relaxed() && r.Redirect() != "" {
		return byText(written)
	}
	return r, nil
}

// look is [run.Spec.Look].
func (w *watcher) look() (run.Look, bool, error) {
	if err := mistaken(w.home, w.agent); err != nil {
		return run.Look{}, false, err
	}
	next, edited, err := w.read()
	if err != nil || len(edited) == 0 {
		if err == nil {
			w.now = next // with newer times
		}
		return run.Look{}, false, err
	}
	if _, err := home.Open(w.home.Dir(), w.home.Tenant()); err != nil {
		return run.Look{}, false, err
	}
	look := run.Look{}
	for _, i := range edited {
		findings, err := w.parse(i, &next[i])
		if err != nil {
			return run.Look{}, false, err
		}
		for _, f := range findings {
			look.Notes = append(look.Notes, f.String())
		}
		look.Components = append(look.Components, w.narrowings[i].name)
	}
	if look.Layers, look.Floor, err = w.layers(next); err != nil {
		return run.Look{}, false, err
	}
	w.now = next
	return look, true, nil
}

// layers are what the narrowings say, and those of them that are floors.
func (w *watcher) layers(next []reading) (layers, floors []*caps.Layer, err error) {
	for i, r := range next {
		switch {
		case r.layer == nil:
		case w.narrowings[i].floor:
			floors = append(floors, r.layer)
		default:
			layers = append(layers, r.layer)
		}
	}
	if layers, err = w.resolve(layers); err == nil {
		floors, err = w.resolve(floors)
	}
	return layers, floors, err
}

// ReadNarrowing reads a file of the operator's; the error wraps [fs.ErrNotExist]
// if there is none, be it that its folder is not there either.
func ReadNarrowing(path string) ([]byte, error) {
	data, err := tomlfile.ReadFile(path, 0)
	if err == nil && data == nil {
		data = []byte{}
	}
	if err != nil {
		if _, none := os.Lstat(filepath.Dir(path)); errors.Is(none, fs.ErrNotExist) {
			return nil, none
		}
	}
	return data, err
}

// read reads what may have changed, and says which of the narrowings did.
func (w *watcher) read() (next []reading, edited []int, err error) {
	next = slices.Clone(w.now)
	for i, s := range w.narrowings {
		r := &next[i]
		seen := StateOf(s.Path)
		if seen == r.state && seen != (FileState{}) {
			continue
		}
		if !seen.Sure(w.clock()) {
			seen = FileState{}
		}
		data, err := ReadNarrowing(s.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist) && s.data == nil:
			data = nil
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, fmt.Errorf("%s was there when the run was launched and is gone: put it back, or launch again "+
				"without it", s.Path)
		case err != nil:
			return nil, nil, fmt.Errorf("reading again: %w", err)
		}
		if (data == nil) != (r.data == nil) || !bytes.Equal(data, r.data) {
			edited = append(edited, i)
		}
		r.state, r.data = seen, data
	}
	return next, edited, nil
}

// parse makes the layer of narrowing i out of what was read.
func (w *watcher) parse(i int, r *reading) ([]policy.Finding, error) {
	if r.layer = nil; r.data == nil {
		return nil, nil
	}
	layer, findings := w.narrowings[i].parse(r.data)
	r.layer = layer
	return findings, policy.AsError(findings)
}

// floorAgain is how the operator's floor is read between turns. What it says is
// met with the floor of the launch, so a file that was not used then, or was not
// there, counts for nothing until it is edited.
func (a *Reader) floorAgain(c *Composition) Narrowing {
	path := c.Home.Profile(policy.Untrusted)
	again := Narrowing{name: policy.Untrusted, Path: path, floor: true, parse: func(data []byte) (*caps.Layer,
		[]policy.Finding,
	) {
		p, findings := policy.ParseProfile(policy.Untrusted, path, data, a.Options(c.Home, c.Config))
		if p == nil {
			return nil, findings
		}
		l := *p.Layer
		l.Name, l.Because = policy.Untrusted, caps.UntrustedContext
		return &l, findings
	}}
	if data, err := ReadNarrowing(path); err == nil {
		again.data = data
		again.layer, _ = again.parse(data)
	}
	return again
}
