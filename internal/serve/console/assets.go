package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"html/template"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets templates
var files embed.FS

// assets are the style, the script and the icon, by name; each is served under
// a path that has its digest, and so may be kept for ever.
type assets map[string]asset

type asset struct {
	path string
	kind string
	data []byte
}

func loadAssets() assets {
	all := assets{}
	list, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // what is embedded is there
	}
	for _, e := range list {
		data, err := files.ReadFile("assets/" + e.Name())
		if err != nil {
			panic(err)
		}
		sum := sha256.Sum256(data)
		all[e.Name()] = asset{"/ui/assets/" + hex.EncodeToString(sum[:6]) + "/" + e.Name(), kindOf(e.Name()), data}
	}
	return all
}

func kindOf(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}

func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	found, ok := a[r.PathValue("name")]
	if !ok || found.path != r.URL.Path {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", found.kind)
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(found.data)
}

// parsePages makes a template of each page, in the layout that all have.
func parsePages(a assets, now func() time.Time) map[string]*template.Template {
	words := words()
	maps.Copy(words, timeWords(now))
	words["asset"] = func(name string) string { return a[name].path }
	layout := template.Must(template.New("").Funcs(words).ParseFS(files, "templates/layout.html", "templates/parts.html"))
	pages := map[string]*template.Template{}
	names, err := fs.Glob(files, "templates/page_*.html")
	if err != nil {
		panic(err)
	}
	for _, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(path.Base(file), "page_"), ".html")
		pages[name] = template.Must(template.Must(layout.Clone()).ParseFS(files, file))
	}
	return pages
}
