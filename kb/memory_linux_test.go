//go:build !race

package kb_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/kb"
)

// What a process holds of its own while it takes in a journal does not grow with
// the journal: it is what the database holds of it at a time. RLP_SOAK=1 makes it
// 800,000 records, for which it was 460 MiB.
func TestIntakeHoldsLittle(t *testing.T) {
	records, most := 300_000, 150 // MiB, however many
	if os.Getenv("RLP_SOAK") != "" {
		records = 800_000
	}
	home := filepath.Join(t.TempDir(), "home")
	if err := writeRun(t, journalDir(t, home, ""), "run", records).Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=intake\n"+home)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, stderr.String())
	}
	var taken, added int
	if _, err := fmt.Sscan(string(out), &taken, &added); err != nil || taken != records+1 {
		t.Fatalf("%q: %v", out, err)
	}
	t.Logf("%d records: %d MiB of its own", taken, added)
	if added > most {
		t.Errorf("%d records: %d MiB of its own, and at most %d are expected", taken, added, most)
	}
}

// childIntake takes in what there is, and says how many records that were and how
// much more memory it had of its own than before, in MiB.
func childIntake(home string) error {
	s, err := kb.Open(context.Background(), kb.Options{Home: home})
	if err != nil {
		return err
	}
	before, err := ownMemory()
	if err != nil {
		return err
	}
	done := make(chan struct{})
	most := make(chan int)
	go func() {
		tick, held := time.NewTicker(5*time.Millisecond), 0
		defer tick.Stop()
		for {
			if now, err := ownMemory(); err == nil {
				held = max(held, now)
			}
			select {
			case <-tick.C:
			case <-done:
				most <- held
				return
			}
		}
	}()
	got, err := s.Ingest(context.Background())
	close(done)
	held := <-most
	if err == nil {
		err = s.Close()
	}
	if err == nil {
		fmt.Println(got.Records, (held-before)>>10)
		os.Exit(0)
	}
	return err
}

// ownMemory is what this process has in memory that is of no file, in KiB.
func ownMemory() (int, error) {
	text, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if v, is := strings.CutPrefix(line, "RssAnon:"); is {
			return strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")))
		}
	}
	return 0, err
}
