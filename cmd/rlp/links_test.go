package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// unlinked are what no program of ours has a use for and what libraries would bring:
// each start of every command initializes it.
var unlinked = []string{
	"google.golang.org/grpc", "github.com/prometheus/", "github.com/grpc-ecosystem/",
	"google.golang.org/genproto/", "go.opentelemetry.io/proto/",
}

func TestNoProgramLinksGRPC(t *testing.T) {
	list, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(list))
	for _, p := range packages {
		if slices.ContainsFunc(unlinked, func(prefix string) bool { return strings.HasPrefix(p, prefix) }) {
			t.Errorf("rlp links %s", p)
		}
	}
	if control := "go.opentelemetry.io/otel/sdk/trace"; !slices.Contains(packages, control) {
		t.Errorf("control: %s is not among its packages", control)
	}
}
