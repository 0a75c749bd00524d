package config

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// A NamedPath is a file or folder of the operator's that a setting names, be it
// in config.toml or in the environment. No agent may write it: it decides what
// rlp does, or what it runs as the operator.
type NamedPath struct {
	Key    string // the setting, such as "serve.tls_key"
	Path   string // absolute and clean
	Secret bool   // no agent may read it either
}

// Every field of a [Config] that holds text says by its tag what the text names:
//
//	path:"-"            no file of this machine
//	path:"KEY"          a file, or a command or a place with files in it; KEY is the setting
//	path:"KEY,secret"   a file that no agent may read
//	path:"KEY,secret arguments"   a command, of which the program itself may be read
//
// A field without a tag is taken for one that names files.
const pathTag = "path"

// Paths are the files and folders that the settings name, each once for a
// setting.
func (c Config) Paths() []NamedPath {
	var list []NamedPath
	namedPaths(&list, reflect.ValueOf(c), "", "")
	return list
}

// namedPaths adds what v names, whose field has tag. At is the key of the map
// entry that v is in.
func namedPaths(list *[]NamedPath, v reflect.Value, tag, at string) {
	if tag == "-" {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			inner, tagged := f.Tag.Lookup(pathTag)
			if !tagged {
				inner = f.Name
			}
			namedPaths(list, v.Field(i), inner, at)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			namedPaths(list, v.MapIndex(k), tag, k.String())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			of := tag
			if key, words, _ := strings.Cut(tag, ","); words == "secret arguments" && i == 0 {
				of = key
			}
			namedPaths(list, v.Index(i), of, at)
		}
	case reflect.String:
		key, secret, _ := strings.Cut(tag, ",")
		key = strings.Replace(key, "*", at, 1)
		for _, path := range pathsIn(v.String()) {
			if n := (NamedPath{Key: key, Path: path, Secret: secret != ""}); !slices.Contains(*list, n) {
				*list = append(*list, n)
			}
		}
	}
}

// pathsIn are the absolute paths in one word of a command or setting: the word
// itself, or what follows a sign in it, as in "--config=/etc/x", "file:/x" and
// "cat /x | tail". A path that has a placeholder in it ("/keys/{name}") stands
// for the folder that holds all that it can be.
func pathsIn(word string) []string {
	if strings.Contains(word, "://") && !strings.HasPrefix(word, "file://") {
		return nil
	}
	tokens := strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune("=:,;|&<>()\"'` \t\n", r) })
	var list []string
	for i, token := range append([]string{word}, tokens...) {
		if i > 0 && strings.HasPrefix(token, "-") { // -I/usr/include
			token = token[max(strings.IndexByte(token, '/'), 0):]
		}
		if !filepath.IsAbs(token) {
			continue
		}
		if open := strings.IndexByte(token, '{'); open >= 0 {
			token = token[:strings.LastIndexByte(token[:open], '/')+1]
		}
		if path := filepath.Clean(token); path != "/" && !slices.Contains(list, path) {
			list = append(list, path)
		}
	}
	return list
}
