package providers

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"runloop.dev/rlp/internal/effect/model"
)

// whole is what pieces say together.
func whole(t testing.TB, pieces []model.Piece) (text string, calls []model.ToolCall) {
	t.Helper()
	for _, p := range pieces {
		switch {
		case !p.IsCall:
			text += p.Text
		case p.Call == len(calls):
			if p.ID == "" || p.Name == "" || p.Arguments != "" {
				t.Errorf("a call begins with %+v", p)
			}
			calls = append(calls, model.ToolCall{ID: p.ID, Type: "function", Function: model.Function{Name: p.Name}})
		case p.Call < len(calls) && p.ID == "" && p.Name == "":
			calls[p.Call].Function.Arguments += p.Arguments
		default:
			t.Errorf("%+v behind %d calls", p, len(calls))
		}
	}
	return text, calls
}

// An answer comes in parts that are together what is returned, however the stream is
// cut, and an answer that was not begun is not told of.
func TestAnswersComeInParts(t *testing.T) {
	for _, kind := range kinds {
		for _, name := range []string{"some", "odd", "tools", "mixed", "limited", "nousage", "broken"} {
			_, p, target := setup(t, kind, name)
			r := ask("the stones are cold and grey")
			r.Tools = []model.Tool{{Name: "look", Parameters: json.RawMessage(`{"type":"object"}`)}}
			var pieces []model.Piece
			r.Emit = func(p model.Piece) { pieces = append(pieces, p) }
			got, err := p.Complete(within(t), target, r)
			text, calls := whole(t, pieces)
			if name == "broken" {
				if f := failed(t, err); f.Kind != model.Broken || !strings.HasPrefix("the stones are cold", text) || text == "" {
					t.Errorf("%s %s: %q, %v", kind, name, text, err)
				}
				continue
			}
			if err != nil || text != got.Text || !reflect.DeepEqual(calls, got.ToolCalls) {
				t.Errorf("%s %s: %q %+v in parts, %q %+v whole, %v", kind, name, text, calls, got.Text, got.ToolCalls, err)
			}
			if want := map[string]int{"tools": 1, "mixed": 2}[name]; len(calls) != want {
				t.Errorf("%s %s: %d calls", kind, name, len(calls))
			}
			if name != "tools" && len(pieces) < 4 {
				t.Errorf("%s %s: %d pieces", kind, name, len(pieces))
			}
		}
	}
}
