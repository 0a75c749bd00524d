package main

import (
	"cmp"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"runloop.dev/rlp/internal/serve/host"
	"runloop.dev/rlp/internal/serve/service"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

// BenchmarkHosted is a launch as the service does it, without the service: what
// POST /run costs beside that is HTTP and the queue. The agent is one that does
// nothing, or the bundle $RLP_BENCH_AGENT.
func BenchmarkHosted(b *testing.B) {
	work := b.TempDir()
	dir := filepath.Join(work, "agent.bundle")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.wasm": emptyModule, "policy.caps": "[capabilities]\n",
		"manifest.toml": "[agent]\nname = \"tiny\"\nversion = \"1.0.0\"\nkind = \"wasm32-wasip1\"\nentry_wasm = { path = " +
			"\"a.wasm\" }\n[caps]\nfile = \"policy.caps\"\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	home := filepath.Join(work, "home")
	a := &app{environment: environment{
		env: []string{"HOME=" + work, "RUNLOOP_HOME=" + home}, stdout: io.Discard,
		stderr: os.Stderr,
	}, tenant: "default"}
	if err := installAgent(b.Context(), a, cmp.Or(os.Getenv("RLP_BENCH_AGENT"), dir)); err != nil {
		b.Fatal(err)
	}
	a.kept = compose.NewKept(b.Context(), compose.MemoryForRuns(), a.stderr)
	h := host.New(a.runner(), home, slog.New(slog.DiscardHandler), time.Now)
	b.Cleanup(func() {
		if err := a.closeKept(); err != nil {
			b.Error(err)
		}
	})
	who := &service.Caller{Name: "bench", Tenant: "default", May: service.Launch | service.Read | service.Operate}
	var took []time.Duration
	launch := func() {
		began := time.Now()
		report, err := h.Launch(b.Context(), who, &service.Request{Door: service.HTTP, Agent: "tiny"},
			service.Begin{RunID: uuid.Must(uuid.NewV7()).String()})
		if err != nil || report.Outcome != launcher.OK {
			b.Fatalf("%+v, %v", report, err)
		}
		took = append(took, time.Since(began))
	}
	launch() // it is compiled now
	took = nil
	for b.Loop() {
		launch()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-us")
}
