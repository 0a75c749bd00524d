package api

import (
	"strings"
	"testing"

	"runloop.dev/rlp/internal/serve/service"
)

// The beginning or the end of a run's id is enough wherever one is taken, and one that
// means several names them: those that the caller may know of, and no others.
//
//rlp:holds D8
func TestPartsOfIDs(t *testing.T) {
	const one, two = "0198d2c4-7f1e-7abc-8def-0123456789ab", "0198d2c4-7f1e-7abc-8def-0fffff6789ab"
	k := serve(t, &host{log: &log{}}, Options{}, service.Options{})
	k.host.log.add(one, 2)
	k.host.log.add(two, 2)
	for _, part := range []string{one[26:], one[:26], one, "%E2%80%A6" + one[28:]} {
		for _, path := range []string{"/runs/" + part, "/audit?run=" + part, "/runs/" + part + "/events"} {
			resp, body := k.do(ask{path: path})
			if resp.StatusCode != 200 || !strings.Contains(body, one) || strings.Contains(body, two) {
				t.Errorf("%s: %d %s", path, resp.StatusCode, body)
			}
		}
	}
	for path, want := range map[string]string{
		"/runs/6789ab": "more than one run: " + one + ", " + two, "/runs/0198": one + ", " + two,
		"/audit?run=6789ab": one + ", " + two, "/runs/6789ab/events": two,
	} {
		if resp, body := k.do(ask{path: path}); resp.StatusCode != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	for _, path := range []string{"/runs/77", "/runs/x", "/runs/" + one + "0", "/runs/-", "/audit?run=zz"} {
		if resp, body := k.do(ask{path: path}); resp.StatusCode != 404 && resp.StatusCode != 400 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
	for _, who := range []string{"launcher", "other"} { // may not know that there are any
		resp, body := k.do(ask{path: "/runs/6789ab", head: []string{"X-Who: " + who}})
		if resp.StatusCode != 404 || strings.Contains(body, one) {
			t.Errorf("%s: %d %s", who, resp.StatusCode, body)
		}
	}
	_, own := k.run(`{"agent":"notes_digest","input":{}}`, "X-Who: launcher")
	id, _ := own["run_id"].(string)
	resp, body := k.do(ask{path: "/runs/" + id[28:], head: []string{"X-Who: launcher"}})
	if resp.StatusCode != 200 || !strings.Contains(body, id) {
		t.Errorf("its own: %d %s", resp.StatusCode, body)
	}
	resp, body = k.do(ask{method: "POST", path: "/runs/" + id[28:] + "/cancel", body: ""})
	if resp.StatusCode != 202 || !strings.Contains(body, id) {
		t.Errorf("cancelled: %d %s", resp.StatusCode, body)
	}
}
