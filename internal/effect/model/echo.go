package model

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"strings"
)

// Echo is the model that needs nobody: "local:echo" answers with the text of
// the last message that is the user's or a tool's. A token is a word. With
// tool_choice "required", or a function's name, it calls that tool (the first,
// if none is named) with the arguments {}.
const Echo = "local:echo"

// echoDimensions is the length of a vector that nobody asked another of.
const echoDimensions = 64

// echo answers without a network, the same to the same.
type echo struct{}

func (echo) Complete(ctx context.Context, _ Target, r *CompleteRequest) (Completion, error) {
	if err := ctx.Err(); err != nil {
		return Completion{}, &Failure{Kind: Cancelled, Charge: ChargeNothing}
	}
	c := Completion{FinishReason: "stop", Metered: Metered{In: r.words()}}
	if t := r.ToolChoice; t != nil && t.Mode == "required" {
		name := t.Name
		if name == "" {
			name = r.Tools[0].Name
		}
		c.ToolCalls = []ToolCall{{ID: "call_0", Type: "function", Function: Function{Name: name, Arguments: "{}"}}}
		c.FinishReason, c.Metered.Out = "tool_calls", 1
		return c, nil
	}
	for _, m := range r.Messages {
		if m.Role == "user" || m.Role == "tool" {
			c.Text = m.Content
		}
	}
	for _, stop := range r.Stop {
		c.Text, _, _ = strings.Cut(c.Text, stop)
	}
	if r.MaxTokens > 0 {
		if cut := firstWords(c.Text, r.MaxTokens); len(cut) < len(c.Text) {
			c.Text, c.FinishReason = cut, "length"
		}
	}
	c.Metered.Out = countWords(c.Text)
	return c, nil
}

func (echo) Embed(ctx context.Context, _ Target, r *EmbedRequest) (Vectors, error) {
	if err := ctx.Err(); err != nil {
		return Vectors{}, &Failure{Kind: Cancelled, Charge: ChargeNothing}
	}
	size := r.Dimensions
	if size == 0 {
		size = echoDimensions
	}
	if size*int64(len(r.Input)) > MaxFloats {
		return Vectors{}, &Failure{Kind: TooLarge, Charge: ChargeNothing}
	}
	v := Vectors{Metered: Metered{In: r.words()}}
	for _, s := range r.Input {
		v.Vectors = append(v.Vectors, direction(s, int(size)))
	}
	return v, nil
}

// MaxFloats bounds the numbers in one answer to model_embed.
const MaxFloats = 4 << 20

// direction is a vector of length 1: the sum of one for each word, so that
// texts with common words are near each other.
func direction(text string, size int) []float32 {
	sum := make([]float64, size)
	for word := range strings.FieldsSeq(text) {
		h := sha256.Sum256([]byte(strings.ToLower(word)))
		for i := range 8 {
			n := binary.LittleEndian.Uint32(h[4*i:])
			sum[int(n>>1)%size] += float64(n&1)*2 - 1
		}
	}
	length := 0.0
	for _, x := range sum {
		length += x * x
	}
	v := make([]float32, size)
	if length == 0 {
		v[0] = 1
		return v
	}
	for i, x := range sum {
		v[i] = float32(x / math.Sqrt(length))
	}
	return v
}

func (r *CompleteRequest) words() int64 {
	n := int64(0)
	for _, m := range r.Messages {
		n += countWords(m.Content)
	}
	return n
}

func (r *EmbedRequest) words() int64 {
	n := int64(0)
	for _, s := range r.Input {
		n += countWords(s)
	}
	return n
}

func countWords(s string) int64 {
	n := int64(0)
	for range strings.FieldsSeq(s) {
		n++
	}
	return n
}

func firstWords(s string, n int64) string {
	end := 0
	for word := range strings.FieldsSeq(s) {
		if n == 0 {
			return s[:end]
		}
		n--
		end += strings.Index(s[end:], word) + len(word)
	}
	return s
}
