package jail

import (
	"time"

	"golang.org/x/sys/unix"

	"runloop.dev/rlp/internal/effect/wasi"
)

// What other systems name or number otherwise.
const (
	oDsync    = unix.O_DSYNC
	utimeNow  = -1
	utimeOmit = -2
)

// allocate is not to be had here.
func allocate(int, int64, int64) error { return unix.ENOTSUP }

// syncData is fsync, there being no less.
func syncData(fd int) error { return unix.Fsync(fd) }

// setTimesOf sets the times of the open fd, to the microsecond.
func setTimesOf(fd int, t wasi.Times) error {
	var st wasi.Stat
	if err := statOf(fd, &st); err != nil {
		return err
	}
	pick := func(ns, old int64, now, omit bool) unix.Timeval {
		switch {
		case omit:
			ns = old
		case now:
			ns = time.Now().UnixNano()
		}
		return unix.NsecToTimeval(ns)
	}
	return unix.Futimes(fd, []unix.Timeval{
		pick(t.Atim, st.Atim, t.NowAtim, t.OmitAtim),
		pick(t.Mtim, st.Mtim, t.NowMtim, t.OmitMtim),
	})
}
