package archtest

import (
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// programs are what a build links, by the name that the list has for each.
var programs = [...]struct {
	name string
	args []string
}{
	{"rlp", []string{"./cmd/rlp"}},
	{"confine", []string{"./internal/effect/lane/confined"}},
}

const linkedFile = "testdata/linked.tsv"

// TestLinkedModulesAreListed holds what each program links against a list in which
// each module has a reason: what grows is decided, and does not happen.
func TestLinkedModulesAreListed(t *testing.T) {
	linked := map[string][]string{}
	for _, p := range programs {
		cmd := exec.Command("go", append([]string{
			"list", "-deps", "-f",
			"{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}",
		}, p.args...)...)
		cmd.Dir = "../../.."
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v", cmd.Args, err)
		}
		modules := strings.Fields(string(out))
		slices.Sort(modules)
		for _, module := range slices.Compact(modules) {
			linked[module] = append(linked[module], p.name)
		}
	}
	list, err := os.ReadFile(linkedFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, complaint := range unlisted(linked, string(list)) {
		t.Error(complaint)
	}
}

// unlisted compares what is linked with the lines of a list: module, programs and
// reason, with tabs between them, in the order of the modules.
func unlisted(linked map[string][]string, list string) (complaints []string) {
	listed := map[string]string{}
	last := ""
	for line := range strings.Lines(list) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 || strings.TrimSpace(fields[2]) == "" {
			complaints = append(complaints, linkedFile+": not a module, its programs and a reason: "+line)
			continue
		}
		if fields[0] <= last {
			complaints = append(complaints, linkedFile+": "+fields[0]+" is not behind "+last)
		}
		last = fields[0]
		listed[fields[0]] = fields[1]
	}
	for _, module := range slices.Sorted(maps.Keys(linked)) {
		if programs := strings.Join(linked[module], ","); listed[module] != programs {
			complaints = append(complaints, module+" is linked by "+programs+", and by \""+listed[module]+"\" in "+linkedFile+
				": is it worth it? Then list it, with the reason")
		}
		delete(listed, module)
	}
	for _, module := range slices.Sorted(maps.Keys(listed)) {
		complaints = append(complaints, module+" is linked by nothing any more: take it out of "+linkedFile)
	}
	return complaints
}

func TestControlLinked(t *testing.T) {
	linked := map[string][]string{"a": {"whole"}, "b": {"whole", "small"}, "d": {"whole"}}
	got := unlisted(linked, "a\twhole\tneeded\nc\twhole\tonce needed\nb\twhole\tneeded\nd\twhole\t \n")
	for _, want := range []string{
		"b is not behind c", "b is linked by whole,small", "c is linked by nothing",
		"not a module, its programs and a reason: d", "d is linked by whole,",
	} {
		if !slices.ContainsFunc(got, func(c string) bool { return strings.Contains(c, want) }) {
			t.Errorf("nothing says %q: %q", want, got)
		}
	}
	if got := unlisted(linked, "a\twhole\tneeded\nb\twhole,small\tneeded\nd\twhole\tneeded\n"); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
