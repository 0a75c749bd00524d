package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowLineShowsWhatIsSlowAndGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		quick := slowLine(&out, "compiling", slowAfter)
		time.Sleep(slowAfter - time.Millisecond)
		quick()
		time.Sleep(slowAfter)
		if out.Len() != 0 {
			t.Errorf("what is quick is told of: %q", out.String())
		}
		slow := slowLine(&out, "compiling", slowAfter)
		time.Sleep(slowAfter + time.Millisecond)
		synctest.Wait()
		if out.String() != "compiling" {
			t.Errorf("after a second: %q", out.String())
		}
		slow()
		if out.String() != "compiling\r\x1b[2K" {
			t.Errorf("at the end: %q", out.String())
		}
	})
}

func TestProgressIsSilentWithoutATerminal(t *testing.T) {
	if progress(&bytes.Buffer{}, "compiling") != nil {
		t.Error("progress for no one")
	}
}
