package hostcalls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/internal/effect/model"
	"runloop.dev/rlp/internal/record/audit"
)

// tellingModel is a backend that says what it is told to.
type tellingModel struct {
	text  string
	err   error
	calls int
}

func (m *tellingModel) Complete(context.Context, model.Target, *model.CompleteRequest) (model.Completion, error) {
	m.calls++
	call := model.ToolCall{ID: "c", Type: "function", Function: model.Function{Name: "f", Arguments: `{"key":"` + m.text +
		`"}`}}
	return model.Completion{
		Text: m.text, ToolCalls: []model.ToolCall{call}, FinishReason: "stop",
		Metered: model.Metered{In: 3, Out: 2},
	}, m.err
}

func (m *tellingModel) Embed(context.Context, model.Target, *model.EmbedRequest) (model.Vectors, error) {
	m.calls++
	return model.Vectors{Vectors: [][]float32{{1, 0.5}}, Metered: model.Metered{In: 3}}, m.err
}

// modelRig is a rig with a broker whose default is openai:gpt.
func modelRig(t testing.TB, grants ...string) (*rig, *tellingModel) {
	t.Helper()
	r, backend := newRig(t, grants...), &tellingModel{text: "hello"}
	r.host.cfg.Model = model.New(model.Config{
		Default: "openai:gpt",
		Providers: []model.Provider{{ID: "openai", Kind: "openai"}, {
			ID: "ollama", Kind: "openai",
			Models: []string{"qwen*"},
		}},
		Prices:  map[string]model.Price{"openai:gpt": {In: 1, Out: 1}},
		Backend: backend,
		Now:     func() time.Time { return time.Unix(1000, 0) },
	})
	return r, backend
}

func (r *rig) limit(l caps.Limit, v int64) { r.host.cfg.Limits = r.host.cfg.Limits.With(l, v) }

func askJSON(name, text string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}],"max_tokens":4}`, name, text)
}

// The answer has exactly the fields of the contract.
func TestModelCompleteAnswers(t *testing.T) {
	r, _ := modelRig(t, "model:use:*")
	n, text := r.call("model_complete", askJSON(model.Echo, "a b"))
	want := `{"text":"a b","tool_calls":[],"usage":{"tokens_in":2,"tokens_out":2,"usd":0},"model":"local:echo","finish_reason":"stop","cached":false}`
	if n != int64(len(want)) || text != want {
		t.Errorf("%d %s", n, text)
	}
	_, text = r.call("model_complete", askJSON("", "x"))
	var a model.Answer
	if err := json.Unmarshal([]byte(text), &a); err != nil || a.Text != "hello" ||
		a.Usage != (model.Usage{TokensIn: 3, TokensOut: 2, USD: 0.000005}) || a.Model != "openai:gpt" {
		t.Errorf("%s, %v", text, err)
	}
	if _, text = r.call("model_embed", `{"input":["x"]}`); text != `{"vectors":[[1,0.5]],"usage":{"tokens_in":3,"tokens_out":0,"usd":0.000003},"model":"openai:gpt","cached":false}` {
		t.Errorf("%s", text)
	}
	if len(r.log.Events) != 3 || r.log.Events[0].Status != "ok" || r.log.Events[0].ResultHash == "" {
		t.Errorf("what came of the calls: %+v", r.log.Events)
	}
}

// Without model nothing is asked; a name is judged as it is used, the default
// and the provider of a bare name included.
//
//rlp:holds R32 C17
func TestModelIsJudgedByTheNameThatIsUsed(t *testing.T) {
	for _, c := range []struct {
		grant, asked, target string
		allowed              bool
	}{
		{"", model.Echo, model.Echo, false},
		{"", "", "openai:gpt", false},
		{"model:use:*", "", "openai:gpt", true},
		{"model:use:*", model.Echo, model.Echo, true},
		{"model:use:local:echo", model.Echo, model.Echo, true},
		{"model:use:local:echo", "", "openai:gpt", false},
		{"model:use:openai:*", "", "openai:gpt", true},
		{"model:use:openai:*", model.Echo, model.Echo, false},
		{"model:use:openai:*", "qwen3", "ollama:qwen3", false},
		{"model:use:ollama:qwen3", "qwen3", "ollama:qwen3", true},
		{"model:use:qwen3", "qwen3", "ollama:qwen3", false},
	} {
		for _, call := range []struct{ name, request string }{
			{"model_complete", askJSON(c.asked, "x")},
			{"model_embed", fmt.Sprintf(`{"model":%q,"input":["x"]}`, c.asked)},
		} {
			var grants []string
			if c.grant != "" {
				grants = append(grants, c.grant)
			}
			r, backend := modelRig(t, grants...)
			n, _ := r.call(call.name, call.request)
			d := r.log.Decisions[0]
			if n >= 0 != c.allowed || d.Deny == c.allowed || d.Target != c.target || d.Cap != "model.use" || d.Op != call.name ||
				len(r.log.Decisions) != 1 {
				t.Errorf("%q asks %q: %d, %+v", c.grant, c.asked, n, d)
			}
			if !c.allowed && backend.calls != 0 {
				t.Errorf("%q asks %q: a denied call was made", c.grant, c.asked)
			}
			if d.Args == nil {
				t.Errorf("%q asks %q: args_hash %v", c.grant, c.asked, d.Args)
			}
		}
	}
	r, _ := modelRig(t, "model:use:local:echo")
	n, a := r.denial("model_complete", askJSON("", "x"))
	want := answerJSON{
		"acces", "model:use:openai:gpt", "model_not_permitted",
		`policy.caps does not ask for it; it would need model = ["openai:gpt"]`,
	}
	if n != -2 || a != want {
		t.Errorf("%d %+v", n, a)
	}
}

// What is over a limit is not asked, recorded as denied for that, and says
// which line would have to change. Who may not ask learns nothing of it.
//
//rlp:holds R78 R86
func TestModelLimits(t *testing.T) {
	for _, c := range []struct {
		limit  caps.Limit
		reason string
		asked  string
	}{
		{caps.ModelTokens, "budget_exhausted", model.Echo},
		{caps.ModelTokensPerMinute, "rate_limited", model.Echo},
		{caps.ModelUSD, "budget_exhausted", "openai:gpt"},
	} {
		free, _ := modelRig(t, "model:use:*")
		if n, _ := free.call("model_complete", askJSON(c.asked, "a b")); n < 0 {
			t.Fatalf("control: %d without a limit", n)
		}
		r, backend := modelRig(t, "model:use:*")
		r.limit(c.limit, 5)
		n, a := r.denial("model_complete", askJSON(c.asked, "a b"))
		d := r.log.Decisions[0]
		if n != -19 || a.Error != "dquot" || a.Reason != c.reason || !strings.Contains(a.Hint, c.limit.String()+" = ") ||
			!d.Deny || d.Reason != c.reason || d.Target != c.asked {
			t.Errorf("%s: %d %+v, %+v", c.limit, n, a, d)
		}
		if backend.calls != 0 {
			t.Errorf("%s: asked all the same", c.limit)
		}
		r, _ = modelRig(t)
		r.limit(c.limit, 0)
		if n, a := r.denial("model_complete", askJSON(c.asked, "a b")); n != -2 || a.Reason != "cap_missing" {
			t.Errorf("%s: who may not ask learns of a limit: %d %+v", c.limit, n, a)
		}
	}
	r, _ := modelRig(t, "model:use:*")
	r.limit(caps.ModelUSD, math.MaxInt64-1)
	if n, a := r.denial("model_complete", askJSON("openai:other", "x")); n != -19 || !strings.Contains(a.Hint,
		`[model.prices."openai:other"]`) {
		t.Errorf("%d %+v", n, a)
	}
}

// The tokens of a run add up, over both calls, to its limit and no further.
//
//rlp:holds R86
func TestModelTokensAddUp(t *testing.T) {
	r, _ := modelRig(t, "model:use:*")
	r.limit(caps.ModelTokens, 20)
	used := 0
	for range 10 {
		if n, _ := r.call("model_complete", askJSON(model.Echo, "a b c")); n > 0 {
			used += 6
		}
		if n, _ := r.call("model_embed", `{"model":"local:echo","input":["a"]}`); n > 0 {
			used++
		}
	}
	if used < 19 || used > 20 {
		t.Errorf("%d tokens of 20", used)
	}
}

func TestModelWithoutProvider(t *testing.T) {
	r, _ := modelRig(t, "model:use:*")
	n, a := r.denial("model_complete", askJSON("mistral:large", "x"))
	if n != -58 || a.Reason != "unavailable" || !strings.Contains(a.Hint, `[[model.providers]] id = "mistral"`) ||
		r.log.Decisions[0].Reason != "unavailable" {
		t.Errorf("%d %+v", n, a)
	}
}

func TestModelRequestsThatMakeNoSense(t *testing.T) {
	r, backend := modelRig(t, "model:use:*")
	for request, path := range map[string]string{
		`{"messages":[{"role":"user","content":1}]}`:                         "messages[0].content ",
		`{"model":"a b","messages":[{"role":"user","content":"x"}]}`:         "model ",
		`{"model":"openai:*","messages":[{"role":"user","content":"x"}]}`:    "model ",
		`{"messages":[{"role":"user","content":"x"}],"n":3}`:                 "n ",
		`{"messages":[{"role":"user","content":"x"}],"max_tokens":"twelve"}`: "max_tokens ",
		`{`: "the request ",
	} {
		n, a := r.denial("model_complete", request)
		if n != -28 || a.Reason != "invalid_request" || !strings.HasPrefix(a.Hint, path) {
			t.Errorf("%s: %d %+v", request, n, a)
		}
	}
	if backend.calls != 0 || slices.ContainsFunc(r.log.Decisions, func(d audit.Kept) bool {
		return !d.Deny ||
			d.Reason != "invalid_request"
	}) {
		t.Errorf("%+v", r.log.Decisions)
	}
}

// Each failure has its number; the guest reads the provider's words, records
// the kind alone.
func TestModelFailures(t *testing.T) {
	for kind, want := range map[model.Kind]Errno{
		model.Invalid: Inval, model.Refused: Notsup, model.NotFound: Noent, model.RateLimited: Dquot, model.TooLarge: TooBig,
		model.Unavailable: IO, model.Broken: IO, model.TimedOut: TimedOut, model.Cancelled: TimedOut,
	} {
		r, backend := modelRig(t, "model:use:*")
		var warned []string
		r.host.cfg.Warn = func(m string) { warned = append(warned, m) }
		backend.err = &model.Failure{Kind: kind, Status: 418, Detail: "your prompt said plans", Charge: model.ChargeNothing}
		n, a := r.denial("model_complete", askJSON("", "plans"))
		if n != -int64(want) || a.Error != want.String() || !strings.HasSuffix(a.Hint, ": your prompt said plans") {
			t.Errorf("%s: %d %+v", kind, n, a)
		}
		done := r.log.Events[0]
		if done.Status != "error" || !strings.Contains(done.ErrorSummary, string(kind)) ||
			strings.Contains(fmt.Sprintf("%+v %+v", r.log.Events, r.log.Decisions), "plans") {
			t.Errorf("%s is recorded as %+v", kind, done)
		}
		if (kind == model.Refused) != (len(warned) == 1) {
			t.Errorf("%s: the operator hears %q", kind, warned)
		}
	}
	r, backend := modelRig(t, "model:use:*")
	backend.err = errors.New("disk on fire at /secret/path")
	if n, a := r.denial("model_complete", askJSON("", "x")); n != -29 || strings.Contains(a.Hint, "fire") {
		t.Errorf("%d %+v", n, a)
	}
}

// A model that says a secret's value says it to nobody.
func TestModelAnswersAreScrubbed(t *testing.T) {
	const value = "hunter2hunter2"
	r, backend := modelRig(t, "model:use:*")
	backend.text = value
	if _, text := r.call("model_complete", askJSON("", "x")); strings.Count(text, value) != 2 {
		t.Fatalf("control: %s", text)
	}
	r.host.cfg.Secrets = oneSecret{"rlsec_abc", value, "runloop/mail/key"}
	if _, text := r.call("model_complete", askJSON("", "x")); strings.Contains(text, value) ||
		strings.Count(text, "[secret]") != 2 || !json.Valid([]byte(text)) {
		t.Errorf("%s", text)
	}
	backend.err = &model.Failure{Kind: model.Invalid, Detail: "not " + value, Charge: model.ChargeNothing}
	if _, a := r.denial("model_complete", askJSON("", "x")); strings.Contains(a.Hint, value) {
		t.Errorf("%+v", a)
	}
}

// Whatever a guest passes: one decision, and no call that it does not allow.
func FuzzModel(f *testing.F) {
	f.Add(true, askJSON("", "x"))
	f.Add(true, askJSON(model.Echo, "x"))
	f.Add(false, `{"input":["x"],"dimensions":4}`)
	f.Add(true, `{"messages":[{"role":"tool"}]}`)
	f.Fuzz(func(t *testing.T, completes bool, request string) {
		if len(request) > 1<<15 {
			return
		}
		name := "model_embed"
		if completes {
			name = "model_complete"
		}
		r, backend := modelRig(t, "model:use:local:echo")
		n, text := r.call(name, request)
		if backend.calls != 0 || len(r.log.Decisions) != 1 {
			t.Errorf("%q: %d calls, %+v", request, backend.calls, r.log.Decisions)
		}
		if !json.Valid([]byte(text)) {
			t.Errorf("%q: %d %q", request, n, text)
		}
	})
}

// BenchmarkModelEcho is a whole call to the echo: read, judged, recorded,
// answered.
func BenchmarkModelEcho(b *testing.B) {
	r, _ := modelRig(b, "model:use:*")
	request := askJSON(model.Echo, "what is the capital of France?")
	copy(r.mem[16:], request)
	fn := r.funcs["model_complete"]
	b.ReportAllocs()
	for b.Loop() {
		r.log.Decisions, r.log.Events = r.log.Decisions[:0], r.log.Events[:0]
		stack := []uint64{16, uint64(len(request)), outAt, 4096}
		if err := fn.Call(b.Context(), r.mem, stack); err != nil || int64(stack[0]) < 0 {
			b.Fatal(err, int64(stack[0]))
		}
	}
}
