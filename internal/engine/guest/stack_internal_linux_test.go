package guest

import "testing"

// use writes where frames would be, as deep as that.
func (r *region) use(depths ...int) {
	for _, d := range depths {
		r.all[len(r.all)-d] = 1
	}
}

// How much of a stack was used is told by what frames leave in it, however large
// they are, and nothing is looked for beyond a gap that no frame leaves.
func TestTheDepthOfAStackIsSeen(t *testing.T) {
	far := []int(nil)
	for d := 60 << 10; d < 7<<20; d += 60 << 10 {
		far = append(far, d)
	}
	for name, c := range map[string]struct {
		depths []int
		frame  uint64
		want   uint64
	}{
		"nothing":                   {nil, 1 << 10, 0},
		"one small frame":           {[]int{100}, 1 << 10, 4 << 10},
		"beyond a gap":              {[]int{100, 40 << 10}, 1 << 10, 4 << 10},
		"a frame as large":          {[]int{100, 40 << 10}, 40 << 10, 40 << 10},
		"as much as is kept":        {[]int{100, stackKept}, stackKept, stackKept},
		"more":                      {[]int{100, stackKept + 1}, stackKept, stackKept + 4<<10},
		"one large frame":           {[]int{100, 300 << 10}, 400 << 10, 300 << 10},
		"a frame as large as all":   {[]int{8 << 20}, 1 << 40, 8 << 20},
		"many frames, one by one":   {far, 64 << 10, 119 * 60 << 10},
		"no frame, and none so far": {nil, 1 << 40, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := new(stacks).take(8 << 20)
			defer r.release()
			r.use(c.depths...)
			if got := r.touched(c.frame); got != c.want {
				t.Errorf("%d, not %d", got, c.want)
			}
		})
	}
}

// A run finds nothing in its stack of the run before, and the host keeps little of
// it.
func TestAStackIsCleanForTheNextRun(t *testing.T) {
	depths := []int{1, 5000, 30 << 10, stackKept, stackKept + 1, 100 << 10, 1 << 20, 7 << 20}
	s := &stacks{most: 1}
	defer s.keep(0)
	for n := range len(depths) + 1 {
		r := s.take(8 << 20)
		r.use(depths[:n]...)
		r.touched(8 << 20)
		if !s.put(r) || s.put(r) {
			t.Fatal("control: it is not kept, or two are")
		}
		for _, d := range depths {
			if r.all[len(r.all)-d] != 0 {
				t.Errorf("after %d frames: what lay %d deep is there", n, d)
			}
		}
		if next := s.take(4 << 20); next != r || !s.put(next) {
			t.Fatal("control: it is another one")
		}
	}
}

// What is not in use gives back all but a little, few are kept, and one that is
// taken again has as much room as is asked for.
func TestIdleStacksAreFewAndSmall(t *testing.T) {
	l := NewLibrary(0)
	var all []*region
	for range 2 * mostIdle {
		all = append(all, l.stacks.take(1<<20))
	}
	for i, r := range all {
		r.use(100, 500<<10)
		r.touched(1 << 20)
		if kept := l.stacks.put(r); kept != (i < mostIdle) {
			t.Fatalf("the one with the number %d is kept: %v", i, kept)
		} else if !kept {
			r.release()
		}
	}
	for range mostIdle / 2 {
		r := l.stacks.take(8 << 20)
		rest := r.all[len(r.all)-8<<20 : len(r.all)-stackKept]
		if at := firstResident(rest); at != len(rest) {
			t.Errorf("%d bytes of memory are kept", len(rest)-at)
		}
		r.use(8 << 20)
		r.release()
	}
	if err := l.Close(); err != nil || len(l.stacks.idle) > 0 || l.stacks.put(&region{}) {
		t.Errorf("after the library is closed: %v, %d are there, or another is kept", err, len(l.stacks.idle))
	}
}

// What a guest that did not end in the engine used is not known: its stack is for
// nobody else.
func TestAStackThatIsInUseIsNotKept(t *testing.T) {
	for _, inUse := range []bool{true, false} {
		to := &stacks{most: 1}
		s := stack{at: to.take(1 << 20)}
		if inUse {
			s.engine = &engineStack{new([]byte), new(uintptr), new(*byte), new(*uint64)}
		}
		if s.free(to); len(to.idle) == 1 == inUse || s.at != nil {
			t.Errorf("in use: %v, and %d are kept", inUse, len(to.idle))
		}
		to.keep(0)
	}
}
