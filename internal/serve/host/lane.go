package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"runloop.dev/rlp/internal/effect/lane"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/launcher/program"
)

// laneTriedFor is how long it counts whether this machine has a lane.
const laneTriedFor = time.Minute

// A laneTrial is whether programs could be kept from what they must be kept from.
type laneTrial struct {
	mu   sync.Mutex
	name string // that was tried
	at   time.Time
	has  bool
}

// tried tries the lane that requests would run programs in, unless that was done a
// moment ago.
func (t *laneTrial) tried(
	ctx context.Context, a *compose.Runner, c *compose.Composition, now func() time.Time,
) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := c.Config.Exec.Lane
	if name == "auto" && len(c.Config.Exec.Asked) > 0 {
		name = "container"
	}
	if name == t.name && now().Sub(t.at) < laneTriedFor {
		return t.has, nil
	}
	dir, err := os.MkdirTemp("", "rlp-lane")
	if err != nil {
		return false, err
	}
	id := uuid.NewString()
	l, err := lane.Open(ctx, name, lane.Config{
		Work: filepath.Join(dir, id, "run"), ID: id, Self: program.ConfineCommand(a.Helper),
		Bounds: compose.Bounds(c.Config.Exec), Container: a.ContainerConfig(c.Config.Exec),
	})
	if err == nil {
		err = l.Close()
	}
	var missing *lane.UnsupportedError
	t.name, t.at, t.has = name, now(), !errors.As(err, &missing)
	if missing != nil {
		err = nil
	}
	return t.has && err == nil, errors.Join(err, os.RemoveAll(dir))
}
