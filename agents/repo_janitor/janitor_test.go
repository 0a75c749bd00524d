package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"runloop.dev/rlp/agents/sdk"
	"runloop.dev/rlp/agents/sdk/sdktest"
)

var defaults = options{staleDays: 90, large: 1 << 20, top: 20}

// A program is what a fake one answers.
type program struct {
	exit           int
	timedOut, cut  bool
	stdout, stderr string
}

// answer is the program as exec_run answers.
func (p program) answer() []byte {
	head, _ := json.Marshal(map[string]any{
		"exit_code": p.exit, "timed_out": p.timedOut, "stdout_bytes": len(p.stdout), "stderr_bytes": len(p.stderr),
		"stdout_truncated": p.cut,
	})
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	return append(append(out, head...), p.stdout+p.stderr...)
}

// machine is a host whose programs answer by what their command line holds.
func machine(t *testing.T, programs map[string]program) (h *sdktest.Host, ran *[][]string) {
	t.Helper()
	h, ran = sdktest.New(t), new([][]string)
	h.Handle("exec_run", func(args []string) ([]byte, error) {
		var req struct {
			Argv []string `json:"argv"`
		}
		if err := json.Unmarshal([]byte(args[0]), &req); err != nil {
			t.Fatal(err)
		}
		*ran = append(*ran, req.Argv)
		line := strings.Join(req.Argv, " ")
		for part, p := range programs {
			if strings.Contains(line, part) {
				return p.answer(), nil
			}
		}
		return program{}.answer(), nil
	})
	return h, ran
}

func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReport(t *testing.T) {
	repo, out := checkout(t), t.TempDir()
	h, ran := machine(t, map[string]program{
		"--merged":              {stdout: "main\t17280000\t*\nold\t864000\t \n"},
		"for-each-ref --format": {stdout: "main\t17280000\t*\nold\t864000\t \nodd`\x01\t864000\t \nnew\t17000000\t \n"},
		"status":                {stdout: " M a\x00R  now\x00before\x00?? new\x00UU both\x00 D gone\x00A  add\x00"},
		"ls-tree": {stdout: "100644 blob 1234 2097152\tbig\x00100644 blob 1234 7\ta b\n\x00160000 commit " +
			"1234 -\tsub\x00"},
		"grep": {stdout: repo + "/x\x00TODO\n" + repo + "/x\x00FIXME\n" + repo + "/y\x00TODO\n"},
	})
	text := string(run(repo, out, defaults))
	for _, want := range []string{
		"- branches: 4, 2 stale", "- not committed: 6", "- files: 2, 2097159 bytes, 1 large",
		"- FIXME: 1\n- TODO: 2\n- XXX: 0",
		"- `odd??`: 190 days, not merged", "- `old`: 190 days, merged, can go", "- conflict: `both`", "- staged: `now`",
		"- deleted: `gone`",
		"- untracked: `new`", "- `big`: 2097152 bytes", "- `x`: FIXME 1 TODO 1",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	if file, err := os.ReadFile(filepath.Join(out, reportName)); err != nil || string(file) != text ||
		strings.Contains(text, "Problems") {
		t.Errorf("%v: the file is\n%s", err, file)
	}
	var result struct {
		Totals map[string]int
		Stale  []struct {
			Branch string
			Merged bool
		}
	}
	if err := json.Unmarshal(h.Result, &result); err != nil || result.Totals["todo"] != 2 || len(result.Stale) != 2 ||
		!result.Stale[1].Merged {
		t.Errorf("%v: %s", err, h.Result)
	}
	for _, argv := range *ran {
		if argv[0] == gitProgram && (!slices.Contains(argv, "core.fsmonitor=false") ||
			!slices.Contains(argv, "--no-optional-locks")) {
			t.Errorf("%q can run what the checkout says", argv)
		}
	}
	if len(*ran) > 16 {
		t.Errorf("%d programs, more than the manifest's exec_spawns", len(*ran))
	}
}

func TestProblems(t *testing.T) {
	repo := checkout(t)
	problems := func(h *sdktest.Host, repo string) string {
		var result struct {
			Problems []struct{ Doing, Target, Why string }
		}
		_ = run(repo, t.TempDir(), defaults)
		if err := json.Unmarshal(h.Result, &result); err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, p := range result.Problems {
			list = append(list, p.Doing+" "+p.Target+": "+p.Why)
		}
		return strings.Join(list, "; ")
	}
	h, _ := machine(t, nil)
	if got := problems(h, repo); got != "" {
		t.Errorf("control: %s", got)
	}
	h, _ = machine(t, map[string]program{
		"status": {exit: 128, stderr: "fatal: detected dubious ownership\nmore"}, "ls-tree": {exit: 137, timedOut: true},
		"grep": {exit: 1, cut: true},
	})
	want := "run git status: exit code 128: fatal: detected dubious ownership; run git ls-tree: took longer than 30s; " +
		"read all of grep: it says more than the host keeps"
	if got := problems(h, repo); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	h, _ = machine(t, nil)
	h.Deny("exec_run", "", &sdk.Error{Errno: sdk.ErrDenied, Reason: "program_not_permitted"})
	if got := problems(h, repo); strings.Count(got, "denied (program_not_permitted)") != 4 {
		t.Errorf("%s", got)
	}
	h, ran := machine(t, nil)
	if got := problems(h, t.TempDir()); !strings.HasPrefix(got, "look at ") ||
		!strings.HasSuffix(got, ".git: does not exist") || len(*ran) != 0 {
		t.Errorf("no checkout: %s; ran %q", got, *ran)
	}
	_, _ = machine(t, nil)
	if text := string(run(repo, "/nonexistent", defaults)); !strings.Contains(text,
		"- write `/nonexistent/repo_janitor.md`: does not exist") {
		t.Errorf("%s", text)
	}
}

func TestListsAreCut(t *testing.T) {
	r := report{options: options{top: 2}}
	for _, p := range []string{"a", "b", "c", "d"} {
		r.changes = append(r.changes, change{"changed", p})
	}
	if text := string(r.markdown()); !strings.Contains(text, "- changed: `b`\n- and 2 more\n") ||
		strings.Contains(text, "`c`") {
		t.Errorf("%s", text)
	}
}

func TestParseOptions(t *testing.T) {
	for args, want := range map[string]options{
		"": defaults, "--top 3 --large=0": {90, 0, 3}, "--stale-days=7": {7, 1 << 20, 20},
	} {
		if got, err := parseOptions(strings.Fields(args)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", args, got, err)
		}
	}
	for _, args := range []string{"--top", "--top x", "--top -1", "--large=1k", "repo", "--stale-days="} {
		if got, err := parseOptions(strings.Fields(args)); err == nil {
			t.Errorf("%q: read as %+v", args, got)
		}
	}
}

// Whatever programs print, nothing of it acts in the report or ends it.
func FuzzParse(f *testing.F) {
	f.Add("main\t1\t*\n")
	f.Add("R  a\x00b\x00")
	f.Add("100644 blob 1 7\ta\x00")
	f.Add("/r/x\x00TODO\n")
	f.Fuzz(func(t *testing.T, text string) {
		r := report{
			options: defaults, changes: parseStatus(text), large: parseTree(text), marks: parseMarks(text, "/r"),
			stale: parseBranches(text),
		}
		r.sort()
		if !json.Valid(r.json()) {
			t.Errorf("%q: %s", text, r.json())
		}
		for _, line := range strings.Split(strings.TrimSuffix(string(r.markdown()), "\n"), "\n") {
			if line != "" && !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "#") {
				t.Errorf("%q: line %q", text, line)
			}
		}
	})
}

// The module can start programs, return a result and read what WASI shows it.
func TestModuleImports(t *testing.T) {
	imports, err := sdktest.Imports(sdktest.Build(t, "."))
	if err != nil {
		t.Fatal(err)
	}
	names := sdktest.Names(imports)
	slices.Sort(names)
	if want := []string{"runloop_v1.exec_run", "runloop_v1.response_read", "runloop_v1.result"}; !slices.Equal(names,
		want) {
		t.Errorf("imports %v, want %v", names, want)
	}
}
