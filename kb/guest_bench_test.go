package kb

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dgraph-io/badger/v4"
	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/pii"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/db"
	"runloop.dev/rlp/kb/journal"
)

// benchGets is how many values one run of the guest reads.
const benchGets = 1 << 14

// BenchmarkGuestGet compares, in one run, reading 1 KiB from badger in Go with
// kb_get of it by a guest, in the process that owns the store: decoded, checked,
// recorded, and recorded again with what came of it.
func BenchmarkGuestGet(b *testing.B) {
	ctx := b.Context()
	s, err := Open(ctx, Options{
		Home: filepath.Join(b.TempDir(), "home"), Mask: pii.New(make([]byte, pii.KeySize)).Mask, MaskVersion: "bench",
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	v := s.View(Origin{Agent: "bench"})
	for i := range 1000 {
		if _, err := v.Put(ctx, "notes", fmt.Sprintf("key%05d", i),
			[]byte(strings.Repeat("of the plan, it is ", 54)[:1024])); err != nil {
			b.Fatal(err)
		}
	}
	store := s.backend.(*owned).db
	b.Run("floor=badger", func(b *testing.B) {
		key := append(db.Named('v', "notes"), "key00500"...)
		for b.Loop() {
			err := store.View(func(txn *badger.Txn) error {
				item, err := txn.Get(key)
				if err != nil {
					return err
				}
				_, err = item.ValueCopy(nil)
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Content(ctx, "notes", "key00500"); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, raw := range map[string]bool{"guest=get": false, "guest=get_raw": true} {
		b.Run(name, func(b *testing.B) { benchmarkGuestGet(b, v, raw) })
	}
}

func benchmarkGuestGet(b *testing.B, v *View, raw bool) {
	for b.Loop() {
		b.StopTimer()
		m, end := gettingGuest(b, v, raw)
		b.StartTimer()
		if e := m.Run(b.Context(), guest.RunConfig{Wall: time.Minute}); e.Kind != guest.OK {
			b.Fatalf("%+v", e)
		}
		b.StopTimer()
		end()
		b.StartTimer()
	}
	b.ReportMetric(float64(b.Elapsed())/float64(b.N)/benchGets, "ns/get")
}

// benchKB is a view as the calls want it.
type benchKB struct {
	hostcalls.KB
	view *View
}

func (k benchKB) Get(ctx context.Context, domain, key string) (hostcalls.KBValue, error) {
	c, err := k.view.Content(ctx, domain, key)
	return hostcalls.KBValue(c), err
}

// benchMasks are the masks that runs see.
type benchMasks struct{ *pii.Masker }

func (m benchMasks) Mask(domain string, v []byte) ([]byte, error) {
	return m.Masker.Mask(domain, v), nil
}

func (m benchMasks) MaskKey(domain, key string) (string, error) {
	return m.Masker.MaskKey(domain, key), nil
}
func (m benchMasks) Marks(text []byte) []string { return pii.Marks(text) }

func gettingGuest(b *testing.B, v *View, raw bool) (*guest.Module, func()) {
	masker := pii.New(make([]byte, pii.KeySize))
	j, err := journal.Create(journal.Options{Dir: b.TempDir() + "/journal", Head: audit.Head{RunID: "bench"}})
	if err != nil {
		b.Fatal(err)
	}
	entries := []caps.Entry{{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "notes"}}}
	if raw {
		entries = append(entries, caps.Entry{Grant: caps.Grant{Family: caps.KBRead, Modes: 1, Scope: "notes_raw"}})
	}
	set, err := caps.Base(entries, caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	g, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		b.Fatal(err)
	}
	h := hostcalls.New(hostcalls.Config{
		Gate: g, Components: hostcalls.Components{KB: benchKB{view: v}, Masks: benchMasks{masker}}, Now: func() int64 {
			return time.Now().UnixNano()
		},
	})
	funcs, err := h.Funcs()
	if err != nil {
		b.Fatal(err)
	}
	m, err := guest.Compile(b.Context(), guest.Config{
		Module: getting("notes", "key00500"), Name: "bench", Funcs: funcs,
		MemoryBytes: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	return m, func() {
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// getting calls kb_get(domain, key, 1024, 2048) benchGets times and traps when
// one does not answer 1 KiB.
func getting(domain, key string) []byte {
	section := func(id byte, body []byte) []byte { return append([]byte{id, byte(len(body))}, body...) }
	str := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	at := byte(len(domain))
	code := []byte{1, 1, 0x7f, 0x41, 0x80, 0x80, 0x01, 0x21, 0, 0x03, 0x40} // i32 n = 1<<14; loop
	code = append(code, 0x41, 0, 0x41, at, 0x41, at, 0x41, byte(len(key)), 0x41, 0x80, 8, 0x41, 0x80, 16, 0x10, 0)
	code = append(code, 0x42, 0x80, 8, 0x52, 0x04, 0x40, 0x00, 0x0b)          // if != 1024 unreachable
	code = append(code, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b) // n--, loop while n
	m := binary.LittleEndian.AppendUint32([]byte("\x00asm"), 1)
	m = append(m, section(1, []byte{2, 0x60, 6, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7e, 0x60, 0, 0})...)
	m = append(m, section(2, slices.Concat([]byte{1}, str(hostcalls.ImportModule), str("kb_get"), []byte{0, 0}))...)
	m = append(m, section(3, []byte{1, 1})...)
	m = append(m, section(5, []byte{1, 0, 1})...)
	m = append(m, section(7, slices.Concat([]byte{2}, str("_start"), []byte{0, 1}, str("memory"), []byte{2, 0}))...)
	m = append(m, section(10, append([]byte{1, byte(len(code))}, code...))...)
	return append(m, section(11, append([]byte{1, 0, 0x41, 0, 0x0b}, str(domain+key)...))...)
}
