package budget

import (
	"fmt"
	"math"

	"runloop.dev/rlp/internal/base/strictjson"
)

// A Tool counts what the calls of an attached tool took in a run.
type Tool struct{ tokens, microUSD int64 }

// perToken is how many bytes of arguments or result stand for a token, where a
// tool does not say what it took.
const perToken = 4

func tokensOf(text []byte) int64 { return int64(len(text)+perToken-1) / perToken }

// Over says why a budget of so many tokens and millionths of a dollar, negative for
// no bound, leaves no call with this input; "" if it does.
func (t *Tool) Over(input []byte, tokens, microUSD int64) string {
	switch {
	case tokens >= 0 && t.tokens+tokensOf(input) > tokens:
		return fmt.Sprintf("the tool's own budget of %d tokens a run is used up", tokens)
	case microUSD >= 0 && t.microUSD >= microUSD:
		return fmt.Sprintf("the tool's own budget of %g USD a run is used up", float64(microUSD)/1e6)
	}
	return ""
}

// Charge takes a call from the budget, whatever came of it: what the tool says it
// took, and never less tokens than its words are.
func (t *Tool) Charge(input, output []byte) {
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
