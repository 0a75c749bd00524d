package providers

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/effect/model/modeltest"
	"runloop.dev/rlp/internal/effect/model/remote"
)

// The test binary is the child of a benchmark, when it is told so.
const role = "RLP_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(role) == "child" {
		if remote.Serve(context.Background(), os.Stdin, os.Stdout, New(Options{})) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const benchText = "what is the capital of France?"

// BenchmarkComplete compares a call to a server on loopback whose answer nobody
// reads, one by this package, and one by a process between the two.
func BenchmarkComplete(b *testing.B) {
	s := modeltest.Start(b, "openai")
	target := model.Target{
		Kind: "openai", BaseURL: s.URL, Model: "m", Key: model.NewKey(modeltest.Key),
		Timeout: time.Minute,
	}
	b.Run("floor=http", func(b *testing.B) {
		q, err := openaiQuestion(target, "/chat/completions", openaiBody(target, ask(benchText)))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, q.url, bytes.NewReader(q.body))
			if err != nil {
				b.Fatal(err)
			}
			req.Header = q.header
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			if _, err = io.Copy(io.Discard, res.Body); err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusOK {
				b.Fatal(res.Status, err)
			}
		}
	})
	ask := func(b *testing.B, backend model.Backend) {
		for b.Loop() {
			got, err := backend.Complete(b.Context(), target, ask(benchText))
			if err != nil || got.Text != benchText {
				b.Fatal(got, err)
			}
		}
	}
	b.Run("asked=here", func(b *testing.B) { ask(b, New(Options{})) })
	b.Run("asked=child", func(b *testing.B) {
		c := remote.New(func() (remote.Command, error) {
			return remote.Command{Path: os.Args[0], Args: []string{"child"}, Env: []string{role + "=child"}}, nil
		})
		defer c.Close()
		ask(b, c)
	})
}
