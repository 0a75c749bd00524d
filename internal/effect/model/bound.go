package model

import "time"

// What a provider adds around each message and to a request with tools, in
// tokens, is bounded by these.
const (
	perMessage = 16
	perRequest = 16
	perTools   = 1024
)

// A Request is one of the two calls.
type Request interface {
	// Name is the model that it names, "" for the default.
	Name() string
	// Use gives it another name.
	Use(name string)
	// bound is the most tokens that its input can have: a token has at least one
	// byte, so that no tokenizer finds more.
	bound() int64
	// wants fills in what the request wants of output.
	wants(w *wish)
	// patience is how long it may take, 0 when it does not say.
	patience() time.Duration
}

// Name is the model that r names, "" for the default.
func (r *CompleteRequest) Name() string { return r.Model }

// Name is the model that r names, "" for the default.
func (r *EmbedRequest) Name() string { return r.Model }

// Use makes r ask the model called name.
func (r *CompleteRequest) Use(name string) { r.Model = name }

// Use makes r ask the model called name.
func (r *EmbedRequest) Use(name string) { r.Model = name }

func (r *CompleteRequest) bound() int64 {
	n := int64(perRequest)
	for _, m := range r.Messages {
		n += perMessage + length(m.Content, m.Name, m.ToolCallID)
		for _, c := range m.ToolCalls {
			n += perMessage + length(c.ID, c.Function.Name, c.Function.Arguments)
		}
	}
	if len(r.Tools) > 0 {
		n += perTools
	}
	for _, t := range r.Tools {
		n += perMessage + length(t.Name, t.Description) + int64(len(t.Parameters))
	}
	if f := r.ResponseFormat; f != nil {
		n += perMessage + length(f.Name, f.Description) + int64(len(f.Schema))
	}
	return n
}

func (r *EmbedRequest) bound() int64 {
	n := int64(perRequest)
	for _, s := range r.Input {
		n += perMessage + length(s)
	}
	return n
}

func (r *CompleteRequest) wants(w *wish) { w.out = r.MaxTokens }
func (r *EmbedRequest) wants(w *wish)    { w.noOutput = true }

func (r *CompleteRequest) patience() time.Duration { return r.Timeout }
func (r *EmbedRequest) patience() time.Duration    { return r.Timeout }

func length(texts ...string) int64 {
	n := 0
	for _, s := range texts {
		n += len(s)
	}
	return int64(n)
}

func (c *Completion) bytes() int64 {
	n := length(c.Text)
	for _, t := range c.ToolCalls {
		n += length(t.Function.Name, t.Function.Arguments)
	}
	return n
}
