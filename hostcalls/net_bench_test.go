package hostcalls

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/effect/egress"
	"runloop.dev/rlp/internal/engine/abi"
	"runloop.dev/rlp/internal/engine/guest"
	"runloop.dev/rlp/internal/record/audit"
	"runloop.dev/rlp/kb/journal"
)

// requestsPerRun is how many requests one run of the guest makes.
const requestsPerRun = 4096

// BenchmarkHTTP compares, in one run, a request for 1 KiB over a kept
// connection by the client of the standard library with one by a guest:
// decoded, judged, recorded, sent, framed and copied into its memory.
func BenchmarkHTTP(b *testing.B) {
	url := benchServer(b)
	b.Run("floor=nethttp", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		for b.Loop() {
			for range requestsPerRun {
				plainGet(b, client, url)
			}
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/requestsPerRun, "ns/request")
	})
	b.Run("guest=net_http", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			module, end := httpGuest(b, url)
			b.StartTimer()
			if e := module.Run(b.Context(), guest.RunConfig{Wall: time.Minute}); e.Kind != guest.OK {
				b.Fatalf("%+v", e)
			}
			b.StopTimer()
			end()
			b.StartTimer()
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/requestsPerRun, "ns/request")
	})
}

func plainGet(b *testing.B, client *http.Client, url string) {
	resp, err := client.Get(url)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || len(body) != 1024 {
		b.Fatalf("%d bytes, %v", len(body), err)
	}
	_ = resp.Body.Close()
}

func benchServer(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, 1024)
	s := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter,
		_ *http.Request,
	) {
		_, _ = rw.Write(body)
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	b.Cleanup(func() { _ = s.Close(); <-done })
	return "http://" + l.Addr().String() + "/"
}

// httpGuest is a guest that asks for url requestsPerRun times, and traps when
// it is refused.
func httpGuest(b *testing.B, url string) (*guest.Module, func()) {
	j, err := journal.Create(journal.Options{Dir: b.TempDir() + "/journal", Head: audit.Head{RunID: "bench"}})
	if err != nil {
		b.Fatal(err)
	}
	g, err := caps.ParseGrant("network:http:" + url[len("http://"):len(url)-1])
	if err != nil {
		b.Fatal(err)
	}
	set, err := caps.Base([]caps.Entry{{Grant: g}}, caps.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	door, err := gate.New(set, j, gate.Options{KeepAllowed: true, KeepDenied: true, MaxCalls: -1})
	if err != nil {
		b.Fatal(err)
	}
	client := egress.New(egress.Config{})
	h := New(Config{Gate: door, Components: Components{HTTP: client}, Now: func() int64 { return time.Now().UnixNano() }})
	op, err := door.Op(netHTTP.name)
	if err != nil {
		b.Fatal(err)
	}
	m, err := guest.Compile(b.Context(), guest.Config{
		Module: askingModule(url), Name: "bench", Funcs: []abi.Func{netHTTP.link(h, op)}, MemoryBytes: 1 << 20,
	})
	if err != nil {
		b.Fatal(err)
	}
	return m, func() {
		client.Close()
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
		if err := m.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// askingModule calls net_http(request, no body, 4096, 8192) requestsPerRun
// times and traps on a negative answer; the request lies at 0.
func askingModule(url string) []byte {
	request := fmt.Sprintf(`{"url":%q}`, url)
	section := func(id byte, body []byte) []byte { return append(append([]byte{id}, leb(len(body))...), body...) }
	str := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }
	code := []byte{1, 1, 0x7f, 0x41} // one i32 local; i32.const n
	code = append(code, leb(requestsPerRun)...)
	code = append(code, 0x21, 0, 0x03, 0x40) // local.set 0; loop
	for _, arg := range []int{0, len(request), 0, 0, 4096, 8192} {
		code = append(append(code, 0x41), leb(arg)...)
	}
	code = append(code, 0x10, 0, 0x42, 0, 0x53, 0x04, 0x40, 0x00, 0x0b) // call; < 0: trap
	code = append(code, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x0b)
	m := binary.LittleEndian.AppendUint32([]byte("\x00asm"), 1)
	m = append(m, section(1, []byte{2, 0x60, 6, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7e, 0x60, 0, 0})...)
	m = append(m, section(2, append(append(append([]byte{1}, str(ImportModule)...), str("net_http")...), 0, 0))...)
	m = append(m, section(3, []byte{1, 1})...)
	m = append(m, section(5, []byte{1, 0, 1})...)
	m = append(m, section(7, append(append([]byte{2}, append(str("_start"), 0, 1)...), append(str("memory"), 2, 0)...))...)
	m = append(m, section(10, append([]byte{1, byte(len(code))}, code...))...)
	return append(m, section(11, append([]byte{1, 0, 0x41, 0, 0x0b}, str(request)...))...)
}
