package providers

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"runloop.dev/rlp/internal/model"
	"runloop.dev/rlp/internal/model/modeltest"
	"runloop.dev/rlp/internal/model/remote"
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

// BenchmarkComplete compares a call to a server on loopback by the SDK alone,
// by this room, and by a process between the two.
func BenchmarkComplete(b *testing.B) {
	s := modeltest.Start(b, "openai")
	target := model.Target{Kind: "openai", BaseURL: s.URL, Model: "m", Key: model.NewKey(modeltest.Key), Timeout: time.Minute}
	b.Run("floor=sdk", func(b *testing.B) {
		service := openai.NewChatCompletionService(option.WithBaseURL(s.URL), option.WithAPIKey(modeltest.Key))
		for b.Loop() {
			stream := service.NewStreaming(b.Context(), openai.ChatCompletionNewParams{
				Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(benchText)},
				StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
			})
			var all openai.ChatCompletionAccumulator
			for stream.Next() {
				all.AddChunk(stream.Current())
			}
			if stream.Err() != nil || all.Choices[0].Message.Content != benchText {
				b.Fatal(stream.Err())
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
