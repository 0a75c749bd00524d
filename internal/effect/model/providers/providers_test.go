package providers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/effect/model/modeltest"
)

var kinds = []string{"openai", "anthropic"}

// setup is a server of a kind, and a backend and target to ask it with.
func setup(t testing.TB, kind, name string) (*modeltest.Server, *Providers, model.Target) {
	t.Helper()
	s := modeltest.Start(t, kind)
	p := New(Options{Backoff: time.Millisecond})
	t.Cleanup(p.client.CloseIdleConnections)
	return s, p, model.Target{
		Kind: kind, BaseURL: s.URL, Model: name, Key: model.NewKey(modeltest.Key),
		Timeout: time.Minute,
	}
}

func ask(text string) *model.CompleteRequest {
	return &model.CompleteRequest{Messages: []model.Message{{Role: "user", Content: text}}}
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func failed(t testing.TB, err error) *model.Failure {
	t.Helper()
	var f *model.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is no Failure", err)
	}
	if strings.Contains(f.Error()+f.Detail, modeltest.Key) {
		t.Errorf("the key is in an error: %s %s", f, f.Detail)
	}
	return f
}

// A whole conversation goes out as each protocol wants it, and comes back.
func TestConversation(t *testing.T) {
	temperature, seed := 0.5, int64(7)
	r := &model.CompleteRequest{
		MaxTokens: 50, Temperature: &temperature, TopP: &temperature, Stop: []string{"END"},
		Messages: []model.Message{
			{Role: "system", Content: "be brief"},
			{Role: "user", Content: "what is at 1?"},
			{Role: "assistant", ToolCalls: []model.ToolCall{
				{ID: "c1", Type: "function", Function: model.Function{Name: "look", Arguments: `{"at":1}`}},
				{ID: "c2", Type: "function", Function: model.Function{Name: "look", Arguments: ""}},
			}},
			{Role: "tool", ToolCallID: "c1", Content: "a stone"},
			{Role: "tool", ToolCallID: "c2", Content: "two birds"},
			{Role: "user", Content: "and now say it"},
		},
		Tools: []model.Tool{{
			Name: "look", Description: "looks",
			Parameters: json.RawMessage(`{"type":"object","properties":{"at":{"type":"integer","maximum":9007199254740993}}}`),
		}},
	}
	for _, kind := range kinds {
		s, p, target := setup(t, kind, "some")
		if kind == "openai" {
			r.Seed = &seed
			r.Messages[2].ToolCalls[1].Function.Arguments = "{}"
		} else {
			r.Seed = nil
		}
		got, err := p.Complete(within(t), target, r)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if got.Text != "and now say it" || got.FinishReason != "stop" || len(got.ToolCalls) != 0 {
			t.Errorf("%s: %+v", kind, got)
		}
		want := model.Metered{In: 7, Out: 5}
		if kind == "anthropic" {
			want.In = 11 // what was read from the provider's cache is read
		}
		if got.Metered != want {
			t.Errorf("%s: metered %+v", kind, got.Metered)
		}
		// A number that no float64 holds goes out as it came in.
		if body := s.Bodies()[0]; !strings.Contains(body, "9007199254740993") {
			t.Errorf("%s: the schema was changed: %s", kind, body)
		}
	}
}

func TestToolCalls(t *testing.T) {
	for _, kind := range kinds {
		_, p, target := setup(t, kind, "tools")
		r := ask("look at 1")
		r.Tools = []model.Tool{{Name: "look"}}
		r.ToolChoice = &model.ToolChoice{Mode: "required", Name: "look"}
		got, err := p.Complete(within(t), target, r)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if len(got.ToolCalls) != 1 || got.ToolCalls[0].Function != (model.Function{Name: "look", Arguments: `{"at":1}`}) ||
			got.ToolCalls[0].ID == "" || got.FinishReason != "tool_calls" {
			t.Errorf("%s: %+v", kind, got)
		}
	}
}

func TestMaxTokensIsTold(t *testing.T) {
	for _, kind := range kinds {
		_, p, target := setup(t, kind, "some")
		r := ask("one two three four")
		r.MaxTokens = 2
		got, err := p.Complete(within(t), target, r)
		if err != nil || got.Text != "one two" || got.FinishReason != "length" {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

// What nobody said is not made up.
func TestUsageAbsent(t *testing.T) {
	for _, kind := range kinds {
		_, p, target := setup(t, kind, "nousage")
		got, err := p.Complete(within(t), target, ask("one two"))
		if err != nil || got.Text != "one two" || got.Metered != model.Unmetered() {
			t.Errorf("%s: %+v, %v", kind, got, err)
		}
	}
}

// What was refused for now is asked for again, not before the provider said.
func TestRepeatsWhatCostNothing(t *testing.T) {
	for _, kind := range kinds {
		for name, calls := range map[string]int{"limited": 2, "flaky": 3} {
			s, p, target := setup(t, kind, name)
			start := time.Now()
			got, err := p.Complete(within(t), target, ask("hello you"))
			if err != nil || got.Text != "hello you" || s.Calls(name) != calls {
				t.Errorf("%s %s: %+v, %v after %d calls", kind, name, got, err, s.Calls(name))
			}
			if name == "limited" && time.Since(start) < 30*time.Millisecond {
				t.Errorf("%s: asked again before retry-after", kind)
			}
		}
	}
}

// A wait that the deadline does not allow is not begun.
func TestDoesNotWaitInVain(t *testing.T) {
	for _, kind := range kinds {
		s, p, target := setup(t, kind, "later")
		start := time.Now()
		_, err := p.Complete(within(t), target, ask("hello"))
		f := failed(t, err)
		if f.Kind != model.RateLimited || f.Status != 429 || f.RetryAfter != time.Hour || f.Charge != model.ChargeNothing {
			t.Errorf("%s: %+v", kind, f)
		}
		if s.Calls("later") != 1 || time.Since(start) > 5*time.Second {
			t.Errorf("%s: %d calls in %v", kind, s.Calls("later"), time.Since(start))
		}
	}
}

func TestFailures(t *testing.T) {
	for _, kind := range kinds {
		for _, c := range []struct {
			name  string
			want  model.Kind
			calls int
		}{
			{"down", model.Unavailable, maxAttempts},
			{"page", model.Unavailable, maxAttempts},
			{"locked", model.Refused, 1},
			{"missing", model.NotFound, 1},
		} {
			s, p, target := setup(t, kind, c.name)
			_, err := p.Complete(within(t), target, ask("hello"))
			f := failed(t, err)
			if f.Kind != c.want || s.Calls(c.name) != c.calls || f.Charge != model.ChargeNothing {
				t.Errorf("%s %s: %+v after %d calls", kind, c.name, f, s.Calls(c.name))
			}
			if c.name == "locked" && f.Detail != "" {
				t.Errorf("%s: what a provider says of a key is passed on: %s", kind, f.Detail)
			}
			if c.name == "missing" && !strings.Contains(f.Detail, "no model missing; your key is [key]") {
				t.Errorf("%s: %s", kind, f.Detail)
			}
		}
	}
}

// An answer that broke off is an error, what came of it is counted, and it is
// not asked for again.
func TestBrokenStream(t *testing.T) {
	for _, kind := range kinds {
		s, p, target := setup(t, kind, "broken")
		_, err := p.Complete(within(t), target, ask("one two three"))
		f := failed(t, err)
		if f.Kind != model.Broken || f.Charge != model.ChargeMeasured || f.Received != int64(len("one two")) ||
			s.Calls("broken") != 1 {
			t.Errorf("%s: %+v after %d calls", kind, f, s.Calls("broken"))
		}
		if kind == "anthropic" && f.Metered.In != 11 {
			t.Errorf("what it said of the prompt is lost: %+v", f)
		}
	}
	for _, kind := range kinds { // what was sent may have been done
		s, p, target := setup(t, kind, "hangup")
		_, err := p.Complete(within(t), target, ask("one"))
		if f := failed(t, err); f.Charge != model.ChargeReserved || s.Calls("hangup") != 1 {
			t.Errorf("%s: %+v after %d calls", kind, f, s.Calls("hangup"))
		}
	}
	_, p, target := setup(t, "anthropic", "overloaded")
	_, err := p.Complete(within(t), target, ask("one two three"))
	if f := failed(t, err); f.Kind != model.Broken || f.Charge != model.ChargeMeasured {
		t.Errorf("an error within a stream: %+v", f)
	}
}

// A tap calls heard when word has come of an answer.
type tap struct {
	word  string
	heard func()
}

func (p tap) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := NewTransport().RoundTrip(r)
	if err == nil {
		res.Body = &tapped{ReadCloser: res.Body, tap: p}
	}
	return res, err
}

type tapped struct {
	io.ReadCloser
	tap
	seen []byte
}

func (b *tapped) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.seen = append(b.seen, p[:n]...); bytes.Contains(b.seen, []byte(b.word)) {
		b.heard()
	}
	return n, err
}

// The end of a call reaches the provider, and what came until then is known.
func TestCancellationIsPrompt(t *testing.T) {
	for _, kind := range kinds {
		for _, name := range []string{"slow", "silent"} {
			s, _, target := setup(t, kind, name)
			ctx, cancel := context.WithCancel(context.Background())
			p := New(Options{Transport: tap{word: `" two"`, heard: cancel}})
			if name == "silent" {
				go func() {
					<-s.Began
					cancel()
				}()
			}
			_, err := p.Complete(ctx, target, ask("one two three"))
			f := failed(t, err)
			if f.Kind != model.Cancelled {
				t.Errorf("%s %s: %+v", kind, name, f)
			}
			if name == "slow" && (f.Charge != model.ChargeMeasured || f.Received != int64(len("one two"))) ||
				name == "silent" && f.Charge != model.ChargeReserved {
				t.Errorf("%s %s: %+v", kind, name, f)
			}
			select {
			case <-s.Gone:
			case <-time.After(time.Minute):
				t.Errorf("%s %s: the provider goes on", kind, name)
			}
		}
	}
}

func TestDeadline(t *testing.T) {
	for _, kind := range kinds {
		s, p, target := setup(t, kind, "silent")
		tries := 0
		// a slow machine does not ask in so short a time
		for wait := 50 * time.Millisecond; s.Calls("silent") == 0 && wait < 10*time.Second; wait *= 8 {
			tries++
			ctx, cancel := context.WithTimeout(context.Background(), wait)
			_, err := p.Complete(ctx, target, ask("one"))
			cancel()
			if f := failed(t, err); f.Kind != model.TimedOut {
				t.Errorf("%s: %+v", kind, f)
			}
		}
		if n := s.Calls("silent"); n == 0 || n > tries {
			t.Errorf("%s: %d calls in %d tries", kind, n, tries)
		}
	}
}

// A redirect to another host is not followed: it would take the prompt, and
// perhaps the key, there. The control follows it.
func TestRedirectElsewhere(t *testing.T) {
	for _, kind := range kinds {
		visits := make(chan string, 8)
		elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
			r *http.Request,
		) {
			visits <- r.URL.Path
		}))
		defer elsewhere.Close()
		s, p, target := setup(t, kind, "elsewhere")
		s.Elsewhere = elsewhere.URL + "/trap"
		_, err := p.Complete(within(t), target, ask("a secret plan"))
		if f := failed(t, err); f.Kind != model.Unavailable || !strings.Contains(f.Detail, "another host") {
			t.Errorf("%s: %+v", kind, f)
		}
		if len(visits) != 0 {
			t.Errorf("%s: the redirect was followed", kind)
		}
		req, err := http.NewRequest(http.MethodPost, target.BaseURL, strings.NewReader(s.Bodies()[0]))
		if err != nil {
			t.Fatal(err)
		}
		if kind == "openai" {
			req.URL.Path += "/chat/completions"
			req.Header.Set("Authorization", "Bearer "+modeltest.Key)
		} else {
			req.URL.Path += "/v1/messages"
			req.Header.Set("X-Api-Key", modeltest.Key)
			req.Header.Set("Anthropic-Version", "2023-06-01")
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if len(visits) != 1 {
			t.Fatalf("%s: control: a plain client does not follow it", kind)
		}
	}
}

func TestNobodyThere(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	for _, kind := range kinds {
		p := New(Options{Backoff: time.Millisecond})
		_, err := p.Complete(within(t), model.Target{Kind: kind, BaseURL: s.URL, Model: "m"}, ask("x"))
		if f := failed(t, err); f.Kind != model.Unavailable || f.Charge != model.ChargeNothing {
			t.Errorf("%s: %+v", kind, f)
		}
	}
}

// What a protocol has no word for is refused, not dropped.
func TestUnknownControlsAreRefused(t *testing.T) {
	seed, hot := int64(1), 1.5
	for name, change := range map[string]func(r *model.CompleteRequest){
		"seed":        func(r *model.CompleteRequest) { r.Seed = &seed },
		"temperature": func(r *model.CompleteRequest) { r.Temperature = &hot },
		"json_object": func(r *model.CompleteRequest) { r.ResponseFormat = &model.ResponseFormat{Type: "json_object"} },
		"messages":    func(r *model.CompleteRequest) { r.Messages[0].Role = "system" },
		"messages[1].tool_calls[0].function.arguments": func(r *model.CompleteRequest) {
			call := model.ToolCall{ID: "c", Type: "function", Function: model.Function{Name: "f", Arguments: "[1"}}
			r.Messages = append(r.Messages, model.Message{Role: "assistant", ToolCalls: []model.ToolCall{call}})
		},
	} {
		s, p, target := setup(t, "anthropic", "some")
		r := ask("x")
		change(r)
		_, err := p.Complete(within(t), target, r)
		if f := failed(t, err); f.Kind != model.Invalid || !strings.Contains(f.Detail, name) || s.Calls("some") != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	_, p, target := setup(t, "anthropic", "some")
	if _, err := p.Embed(within(t), target, &model.EmbedRequest{Input: []string{"x"}}); failed(t,
		err).Kind != model.Invalid {
		t.Error("vectors of a provider that makes none")
	}
	target.Kind = "local"
	if _, err := p.Complete(within(t), target, ask("x")); failed(t, err).Kind != model.Invalid {
		t.Error("a provider of no kind")
	}
}

func TestSchemas(t *testing.T) {
	for _, kind := range kinds {
		s, p, target := setup(t, kind, "some")
		r := ask("x")
		r.ResponseFormat = &model.ResponseFormat{
			Type: "json_schema", Name: "thing",
			Schema: json.RawMessage(`{"type":"object","n":12345678901234567890}`),
		}
		if _, err := p.Complete(within(t), target, r); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if !strings.Contains(s.Bodies()[0], "12345678901234567890") {
			t.Errorf("%s: %s", kind, s.Bodies()[0])
		}
	}
}

func TestEmbed(t *testing.T) {
	_, p, target := setup(t, "openai", "some")
	v, err := p.Embed(within(t), target, &model.EmbedRequest{Input: []string{"a", "bcd"}, Dimensions: 2})
	if err != nil || len(v.Vectors) != 2 || !slices.Equal(v.Vectors[0], []float32{1, 0.5}) || !slices.Equal(v.Vectors[1],
		[]float32{3, 0.5}) || v.Metered.In != 5 {
		t.Errorf("%+v, %v", v, err)
	}
	target.Model = "nousage"
	if v, err := p.Embed(within(t), target, &model.EmbedRequest{Input: []string{"a"}}); err != nil || v.Metered.In != -1 {
		t.Errorf("%+v, %v", v, err)
	}
	target.Model = "broken"
	_, err = p.Embed(within(t), target, &model.EmbedRequest{Input: []string{"a", "b"}})
	if f := failed(t, err); f.Kind != model.Broken || f.Charge != model.ChargeMeasured || f.Metered.In != 5 {
		t.Errorf("%+v", f)
	}
}

// Nothing that stands in the environment changes whom is asked, and with what.
func TestEnvironmentIsNotAsked(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter,
		*http.Request,
	) {
		t.Error("a proxy or another base was asked")
	}))
	defer elsewhere.Close()
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, elsewhere.URL)
	}
	for _, name := range []string{
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID",
		"OPENAI_CUSTOM_HEADERS",
	} {
		t.Setenv(name, "X-Wrong: wrong")
	}
	for _, kind := range kinds {
		_, p, target := setup(t, kind, "some")
		if _, err := p.Complete(within(t), target, ask("x")); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	// No proxy is asked for an address of loopback anyway: the transport has none.
	if transport, ok := NewTransport().(*http.Transport); !ok || transport.Proxy != nil ||
		transport.TLSClientConfig.InsecureSkipVerify {
		t.Errorf("%+v", transport)
	}
}

func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "0.5": 500 * time.Millisecond, "-1": 0, "NaN": 0, "+Inf": 24 * time.Hour,
		"1e300": 24 * time.Hour, "soon": 0,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("%q: %v, not %v", text, got, want)
		}
	}
	if got := retryAfter(http.Header{"Retry-After": {"9"}, "Retry-After-Ms": {"20"}}); got != 20*time.Millisecond {
		t.Errorf("the finer one is not taken: %v", got)
	}
}
