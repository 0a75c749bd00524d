package lane

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Open is the lane that config.toml names, for one run, checked: what it is
// asked for is enforced, or there is none. "auto" is the first of the ranking that
// is. The lane "native" is taken at the operator's word, whatever it promises.
func Open(ctx context.Context, name string, cfg Config) (Lane, error) {
	if name == "auto" {
		return automatic(ctx, cfg)
	}
	l, err := open(name, cfg)
	if err != nil {
		return nil, err
	}
	if err := checked(ctx, l, cfg.Bounds); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// open is a lane by its name, unchecked.
func open(name string, cfg Config) (Lane, error) {
	if cfg.Network && (name == "native" || name == "container") {
		return nil, networkless(name)
	}
	switch name {
	case "native":
		return Native(cfg)
	case "ns":
		return newNS(cfg)
	case "bwrap":
		return newBwrap(cfg)
	case "container":
		if cfg.Container != nil {
			return cfg.Container.Lane(cfg)
		}
		return nil, &UnsupportedError{Lane: name, Why: "nobody said by what containers are started"}
	}
	return nil, &UnsupportedError{Lane: name, Why: "this version does not have it"}
}

// ranking is how "auto" looks for a lane, the strongest first, by what the probes
// of docs/lanes.md found. The lane "native" is none that it takes.
var ranking = [...]string{"ns", "bwrap", "container"}

func automatic(ctx context.Context, cfg Config) (Lane, error) {
	var why []string
	for _, name := range ranking {
		l, err := Open(ctx, name, cfg)
		if err == nil {
			return l, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		var u *UnsupportedError
		if !errors.As(err, &u) {
			return nil, err
		}
		why = append(why, u.Lane+": "+u.Text())
	}
	return nil, &UnsupportedError{Lane: "auto", Why: "no lane here enforces all that is asked for (" + strings.Join(why,
		"; ") + ")"}
}

// checked tries l, and looks whether it enforces what it must.
func checked(ctx context.Context, l Lane, bounds Bounds) error {
	if err := bounds.roomFor(l.Name()); err != nil {
		return err
	}
	if err := l.Check(ctx); err != nil {
		return err
	}
	controls := l.Controls()
	for _, c := range asked(bounds) {
		label := controls[c]
		if label.Level == Enforced || l.Name() == "native" && (label.Level == BestEffort || c != Memory && c != Pids) {
			continue
		}
		return &UnsupportedError{
			Lane: l.Name(), Why: fmt.Sprintf("%s is %s: %s", c, label.Level, label.Why),
			Remedy: label.Remedy,
		}
	}
	return nil
}

// roomFor says why a lane cannot bound processes so low: a group counts those
// that rlp itself has in it, and it has to start.
func (b Bounds) roomFor(lane string) error {
	if lane != "ns" && lane != "bwrap" || b.Pids == 0 || b.Pids >= ownThreads {
		return nil
	}
	return &UnsupportedError{
		Lane: lane, Why: fmt.Sprintf("pids = %d leaves no room for rlp's own, which are counted too", b.Pids),
		Remedy: fmt.Sprintf(`[exec] pids = %d or more, or lane = "container"`, ownThreads),
	}
}
