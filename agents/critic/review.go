package main

import (
	"strconv"
	"strings"
	"unicode"
)

// A text is what is to be reviewed.
type text struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// A remark is one thing that could be plainer.
type remark struct {
	Name   string `json:"name"`
	Remark string `json:"remark"`
}

// longest is how many words a sentence may have before it is called long.
const longest = 30

// empty are words that a sentence loses nothing without.
var empty = []string{"very", "really", "basically", "actually", "simply"}

// review is what the critic has to say, in the order of the texts.
func review(texts []text) []remark {
	remarks := []remark{}
	for _, t := range texts {
		for _, sentence := range strings.FieldsFunc(t.Text, func(r rune) bool { return strings.ContainsRune(".!?", r) }) {
			for _, what := range ofSentence(sentence) {
				remarks = append(remarks, remark{t.Name, what})
			}
		}
	}
	return remarks
}

func ofSentence(sentence string) []string {
	words := strings.FieldsFunc(strings.ToLower(sentence), func(r rune) bool { return !unicode.IsLetter(r) && r != '\'' })
	var list []string
	if len(words) > longest {
		list = append(list, "a sentence of "+strconv.Itoa(len(words))+" words: "+strings.Join(words[:4], " ")+" ...")
	}
	for i, w := range words {
		if i > 0 && w == words[i-1] {
			list = append(list, "\""+w+"\" stands there twice")
		}
		for _, e := range empty {
			if w == e {
				list = append(list, "\""+w+"\" says nothing")
			}
		}
	}
	return list
}
