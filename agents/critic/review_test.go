package main

import (
	"strings"
	"testing"
)

func TestReview(t *testing.T) {
	got := review([]text{
		{"plain", "This is plain. So is this!"},
		{"twice", "It is is there. It is. Is it?"},
		{"long", strings.Repeat("word other ", 20) + "."},
		{"empty", "A very simple text."},
	})
	want := []remark{
		{"twice", `"is" stands there twice`},
		{"long", "a sentence of 40 words: word other word other ..."},
		{"empty", `"very" says nothing`},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	if none := review(nil); none == nil || len(none) != 0 {
		t.Errorf("no texts: %v", none)
	}
}
