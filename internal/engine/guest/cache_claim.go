package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"
)

// A claim is the right to compile one module: of several processes that launch
// it for the first time at once, one compiles and the others wait for what
// comes of it. Each by itself would take as long as all together, and a module
// that is in order would be over its time.
type claim struct{ file *os.File }

// claim waits for the others, as long as compiling may take: who was stopped by
// the terminal keeps its claim and nobody. It gives back what they said of the
// module if they refused it. A claim that cannot be had is done without.
func (c *cache) claim(ctx context.Context, b Bound) (claim, error) {
	if c.base == "" {
		return claim{}, nil
	}
	f, err := os.OpenFile(c.dir+".claim"+temporarySuffix, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return claim{}, nil
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.NewTimer(patience * b.orDefault().Time)
	defer late.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return claim{}, f.Close()
		}
		select {
		case <-tick.C:
		case <-late.C:
			return claim{}, f.Close()
		case <-ctx.Done():
			return claim{}, errors.Join(context.Cause(ctx), f.Close())
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, saidMost))
	if err == nil && len(text) > 0 {
		return claim{}, errors.Join(fmt.Errorf("%w: %s", ErrModule, oneLine(string(text))), f.Close())
	}
	return claim{f}, nil
}

// end lets the next one have its turn, and tells those who wait already what is
// wrong with the module, if it is the module.
func (t claim) end(err error) {
	if t.file == nil {
		return
	}
	if errors.Is(err, ErrModule) {
		_, _ = t.file.WriteString(strings.TrimPrefix(err.Error(), ErrModule.Error()+": "))
	}
	_ = os.Remove(t.file.Name())
	_ = t.file.Close()
}
