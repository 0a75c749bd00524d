package modelapi

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The official clients, in the versions that were tried.
var clients = []string{"openai@7.57.0", "@anthropic-ai/sdk@1.14.0"}

type asked struct {
	Whole  string
	Calls  []called
	Reason string
	Tokens int64
	Again  *string
	Kinds  []string
	Stream struct {
		Text, Reason string
		Calls        []called
		Tokens       int64
		Chunks       int
	}
	Final string
}

type called struct{ ID, Name, Arguments string }

type told struct {
	Kind    string
	Status  int
	Message string
	Retry   *string
}

// The official clients of both providers ask whole and by stream, call tools, embed,
// and are told of errors, whichever provider answers, whose streams are cut anywhere.
func TestOfficialClients(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil || testing.Short() {
		t.Log("not asked: the official clients, which take npm (.ci/setup) and time; the shapes are held by TestShapes")
		return
	}
	dir := t.TempDir()
	install := exec.CommandContext(t.Context(), "npm", append([]string{
		"install", "--no-audit", "--no-fund", "--prefer-offline", "--prefix", dir,
	}, clients...)...)
	if out, err := install.CombinedOutput(); err != nil {
		t.Logf("not asked: the official clients, which npm cannot have here: %v: %s", err, out)
		return
	}
	r := open(t, grant)
	script, err := filepath.Abs("testdata/clients.mjs")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", script)
	var problems strings.Builder
	c.Env, c.Stderr = append(os.Environ(), "CLIENTS="+dir, "BASE="+r.front.URL), &problems
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	var got struct {
		Chat, Responses, Messages map[string]asked
		Errors                    map[string]told
		Embeddings                struct {
			One    []float64
			Many   [][]float64
			Tokens int64
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, list := range map[string]map[string]asked{
		"chat": got.Chat, "responses": got.Responses, "messages": got.Messages,
	} {
		if len(list) != 8 {
			t.Errorf("%s asked %d models", name, len(list))
		}
		for model, a := range list {
			judge(t, name+" "+model, a)
		}
	}
	if e := got.Embeddings; !reflect.DeepEqual(e.One, []float64{3, 0.5}) || !reflect.DeepEqual(e.Many,
		[][]float64{{3, 0.5}, {5, 0.5}}) || e.Tokens != 5 {
		t.Errorf("vectors: %+v", e)
	}
	failures(t, got.Errors)
}

// judge holds what a client made of an answer against what the server behind said.
func judge(t *testing.T, name string, a asked) {
	t.Helper()
	const said = "the stones are cold and grey"
	if a.Whole != said || a.Stream.Text != said || a.Final != said || a.Tokens == 0 || a.Tokens != a.Stream.Tokens {
		t.Errorf("%s: %+v", name, a)
	}
	want := 0
	if strings.HasSuffix(name, "mixed") {
		want = 2
		if a.Again == nil || *a.Again != "a stone" {
			t.Errorf("%s: results of tools do not go back: %+v", name, a.Again)
		}
	}
	if len(a.Calls) != want || !reflect.DeepEqual(a.Calls, a.Stream.Calls) && want > 0 {
		t.Errorf("%s: %+v whole, %+v by stream", name, a.Calls, a.Stream.Calls)
	}
	for i, c := range a.Calls {
		if c.Name != "look" || c.ID == "" || c.Arguments != []string{`{"at":0}`, `{"at":1}`}[i] {
			t.Errorf("%s: call %d is %+v", name, i, c)
		}
	}
	if a.Reason != a.Stream.Reason || a.Reason == "" {
		t.Errorf("%s: %s whole, %s by stream", name, a.Reason, a.Stream.Reason)
	}
}

func failures(t *testing.T, list map[string]told) {
	t.Helper()
	for name, e := range list {
		way, model, _ := strings.Cut(name, " ")
		_, what, _ := strings.Cut(model, ":")
		want := map[string]int{"busy": 529, "later": 429, "denied": 403, "broken": 502, "locked": 503}[what]
		if what == "broken" && (way == "stream" || way == "events") {
			want = 0 // it began, and the end of the stream tells
		}
		if e.Status != want || e.Kind == "" || strings.Contains(e.Message, "sk-test") {
			t.Errorf("%s: %+v, want %d", name, e, want)
		}
		if again := e.Retry != nil && *e.Retry == "true"; e.Retry != nil && again != (what == "busy") {
			t.Errorf("%s: %v", name, *e.Retry)
		}
	}
	if len(list) != 50 {
		t.Errorf("%d errors", len(list))
	}
}
