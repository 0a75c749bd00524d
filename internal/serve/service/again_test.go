package service_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"runloop.dev/rlp/internal/serve/service"
)

// A request can be asked for again once its run has ended, by who asked or operates,
// and by nobody else; one that is long is not kept.
func TestARequestCanBeAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(printing(1), service.Options{Workers: 1, Queue: 20})
		ann := caller("ann", "t")
		q := ask("a")
		q.Input = json.RawMessage(`{"to":"Ada"}`)
		r := submit(t, s, ann, q)
		<-r.Done()
		reader, operator, other := caller("bob", "t"), caller("olga", "t"), caller("ann", "other")
		reader.May, operator.May, other.May = service.Launch|service.Read, service.Operate, service.Operate|service.Read
		for _, c := range []struct {
			who  *service.Caller
			told bool
		}{{ann, true}, {operator, true}, {reader, false}, {other, false}, {nil, false}} {
			again := r.Again(c.who)
			if (again != nil) != c.told || c.told && string(again.Input) != `{"to":"Ada"}` {
				t.Errorf("%+v: %+v", c.who, again)
			}
		}
		long := ask("a")
		long.Input = json.RawMessage(`"` + strings.Repeat("x", 40<<10) + `"`)
		if r = submit(t, s, ann, long); r.Again(ann) != nil {
			t.Error("a run that has not ended has a request to repeat")
		}
		<-r.Done()
		if r.Again(ann) != nil {
			t.Error("a long request is kept")
		}
	})
}
