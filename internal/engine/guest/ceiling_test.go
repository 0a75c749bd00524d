package guest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"runloop.dev/rlp/internal/engine/guest"
)

// Runs have no more memory together than their library may give out: who comes
// when there is none waits, in turn; who must not wait is told; who gives up
// leaves. Control: without a bound nobody waits.
func TestRunsWaitForTheirMemory(t *testing.T) {
	library := guest.NewLibrary(0)
	defer library.Close()
	at := func(n int64) *guest.Module {
		return compile(t, guest.Config{Module: module{pages: 1}.bytes(), MemoryBytes: n, Library: library})
	}
	first, second, third, small := at(100*mib), at(100*mib), at(100*mib), at(mib)
	synctest.Test(t, func(t *testing.T) {
		take := func(m *guest.Module, ctx context.Context) (got chan func()) {
			got = make(chan func(), 1)
			go func() {
				if free, err := m.Reserve(ctx, true); err == nil {
					got <- free
				}
				close(got)
			}()
			synctest.Wait()
			return got
		}
		for range 3 {
			if free, err := first.Reserve(t.Context(), false); err != nil {
				t.Fatalf("control: %v", err)
			} else {
				defer free()
			}
		}
		library.Bound(210 * mib)
		a, b := take(first, t.Context()), take(second, t.Context())
		freeA := <-a
		freeB := <-b
		if _, err := third.Reserve(t.Context(), false); !errors.Is(err, guest.ErrFull) || library.Room(100*mib) {
			t.Errorf("a third: %v", err)
		}
		ctx, giveUp := context.WithCancel(t.Context())
		c, d := take(third, ctx), take(small, t.Context())
		if len(c)+len(d) > 0 {
			t.Error("somebody did not wait")
		}
		giveUp()
		synctest.Wait()
		freeA()
		freeA()
		synctest.Wait()
		freeD, ok := <-d
		if _, took := <-c; took || !ok {
			t.Errorf("who gave up took %t, who waited behind it %t", took, ok)
		}
		freeB()
		freeD()
		if !library.Room(200 * mib) {
			t.Error("not all was given back")
		}
	})
}

// A run may have no more than there is at all.
func TestARunMayHaveNoMoreThanThereIs(t *testing.T) {
	library := guest.NewLibrary(0)
	defer library.Close()
	library.Bound(20 * mib)
	grows := func() guest.Kind {
		mod := compile(t, guest.Config{
			Module: module{pages: 1, code: grow(30 * 16)}.bytes(), MemoryBytes: 100 * mib,
			Library: library,
		})
		free, err := mod.Reserve(t.Context(), true)
		if err != nil {
			t.Fatal(err)
		}
		defer free()
		return mod.Run(t.Context(), guest.RunConfig{Wall: wide}).Kind
	}
	if k := grows(); k != guest.Memory {
		t.Errorf("it ended as %d", k)
	}
	library.Bound(200 * mib)
	if k := grows(); k != guest.OK {
		t.Errorf("control: it ended as %d", k)
	}
}
