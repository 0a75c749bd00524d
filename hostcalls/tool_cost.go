package hostcalls

import (
	"fmt"
	"math"
	"strings"

	"runloop.dev/rlp/internal/base/strictjson"
)

// perToken is how many bytes of arguments or result stand for a token, where a
// tool does not say what it took.
const perToken = 4

func tokensOf(text []byte) int64 { return int64(len(text)+perToken-1) / perToken }

// over says why the budget of t leaves no call with this input; "" if it does.
func (t *attachedTool) over(input []byte) string {
	switch {
	case t.Tokens >= 0 && t.tokens+tokensOf(input) > t.Tokens:
		return fmt.Sprintf("the tool's own budget of %d tokens a run is used up", t.Tokens)
	case t.MicroUSD >= 0 && t.microUSD >= t.MicroUSD:
		return fmt.Sprintf("the tool's own budget of %g USD a run is used up", float64(t.MicroUSD)/1e6)
	}
	return ""
}

// result is what a call gives the guest: JSON as it is, anything else as a text.
func (t *attachedTool) result(output []byte) ([]byte, error) {
	result, err := t.Result(output)
	if err != nil {
		return nil, &toolFailure{"the tool's result is not what its result_schema says", err.Error()}
	}
	return result, nil
}

// charge takes a call from the budget, whatever came of it: what the tool says it
// took, and never less tokens than its words are.
func (t *attachedTool) charge(input, output []byte) {
	words := tokensOf(input) + tokensOf(output)
	var said struct {
		Usage struct {
			TokensIn  float64 `json:"tokens_in"`
			TokensOut float64 `json:"tokens_out"`
			Tokens    float64 `json:"tokens"`
			USD       float64 `json:"usd"`
		} `json:"usage"`
	}
	// A tool says more than what it took. One whose words are no JSON that every
	// reader takes has said nothing, and is charged by their length.
	if strictjson.Unmarshal(output, &said, strictjson.UnknownFields) == nil {
		u := said.Usage
		words = max(words, whole(max(u.Tokens, u.TokensIn+u.TokensOut)))
		t.microUSD += whole(u.USD * 1e6)
	}
	t.tokens += words
}

// whole is n as a count: rounded up, and never negative.
func whole(n float64) int64 {
	if !(n > 0) {
		return 0
	}
	return int64(math.Ceil(min(n, 1<<53)))
}

// A toolFailure is a tool that did not do what it was called for: the guest may
// read what it said, records show that it failed.
type toolFailure struct{ what, said string }

func (f *toolFailure) Error() string { return f.what }

func (f *toolFailure) Unwrap() error {
	const most = 400
	said := strings.ToValidUTF8(f.said[:min(len(f.said), most)], "\ufffd")
	if said = strings.TrimSpace(said); said != "" {
		said = ": " + said
	}
	return &Fail{Errno: IO, Hint: f.what + said}
}
