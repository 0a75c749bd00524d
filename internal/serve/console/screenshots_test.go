package console

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// mostPicture bounds a picture of the docs.
const mostPicture = 64 << 10

// A picture is a page of docs/console, wide and light, and narrow and dark.
type picture struct {
	name string
	high int64
	show func()
}

// pictures are the pages of a stage, on which a run has ended.
func (b *browser) pictures(s *stage, done string) []picture {
	page := func(path string) func() { return func() { b.visit(path) } }
	denial := func(capability string) string { return whyLink(done, s.log.seqOf(done, capability)) }
	return []picture{
		{"home", 860, func() {
			b.visit("/")
			b.until("document.querySelector('[data-status]').textContent === 'Live'")
		}},
		{"run", 820, page("/ui/runs/" + done)},
		{"why", 720, page(denial("fs.write"))},
		{"runs", 600, page("/ui/runs")},
		{"why-nothing", 700, page(denial("fs.read"))},
		{"launch", 720, page("/ui/agents/mail_writer/launch")},
		{"compare", 520, page("/ui/compare?of=" + done + "&with=" + runID(56))},
		{"policy", 760, func() {
			b.edited()
			b.do(chromedp.Evaluate[chromedp.Void]("scrollTo(0, document.getElementById('editor').getBoundingClientRect().top + " +
				"scrollY - 70)"))
		}},
		{"audit", 560, page("/ui/audit?decision=deny")},
		{"agents", 460, page("/ui/agents")},
		{"agent", 640, page("/ui/agents/notes_digest")},
		{"log", 620, page("/ui/log")},
		{"lanes", 640, page("/ui/lanes")},
	}
}

// `make screenshots` has this test write the pictures of docs/console.md; else
// it looks that some can be made, and are small.
func TestScreenshots(t *testing.T) {
	s := newStage(t)
	s.agents, s.pictured = fewAgents(), true
	s.agents[0].InputSchema = []byte(aSchema)
	s.changed = []ask.ChangedServer{{Server: "tracker", Tools: []string{"create_issue"}}}
	b := look(t, s.handler)
	if b == nil {
		return
	}
	into := os.Getenv("RLP_SCREENSHOTS")
	done := s.submit(t, "notes_digest")
	s.finish(t, done, &launcher.Report{Stdout: digestPrinted, Result: result(map[string]any{
		"notes": 14, "contacts": 16,
		"todos_open": 24, "problems": []string{"include: denied"},
	}), Lane: &launcher.Lane{Name: "wasm"}})
	s.log.retell(done, slices.Concat(digestOfNotes()[:5], digestOfNotes()[2:5], digestOfNotes()[1:]))
	get(t, s.handler, "/ui/log/verify", map[string][]string{})
	get(t, s.handler, "/ui/lanes", map[string][]string{})
	for i, p := range b.pictures(s, done) {
		if into == "" && i > 1 {
			break
		}
		b.picture(p, 1180, p.high, false, into)
		b.picture(picture{p.name + "-phone", 780, p.show}, 360, 780, true, into)
	}
	if into != "" {
		s.log.runs, s.log.records = nil, nil
		first := as(New(Options{Runs: noRuns{}, Host: s, Now: clockOfTests}), operator())
		b.base = httptest.NewServer(first).URL
		show := func() { b.visit("/") }
		b.picture(picture{"first", 720, show}, 1180, 720, false, into)
		b.picture(picture{"first-phone", 780, show}, 360, 780, true, into)
	}
}

// picture takes one, and writes it where there is a folder for it.
func (b *browser) picture(p picture, width, height int64, dark bool, into string) {
	b.Helper()
	b.dark(dark)
	b.size(width, height)
	p.show()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	data, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.Fatal(err)
	}
	if data = small(b, data); len(data) > mostPicture {
		b.Errorf("%s has %d bytes, more than %d", p.name, len(data), mostPicture)
	}
	if into != "" {
		if err := os.WriteFile(filepath.Join(into, p.name+".png"), data, 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

const digestPrinted = "14 notes (1 empty), 16 contacts, 24 open to-dos (5 done), 31 dates\n\nfirst deadlines\n  " +
	"2026-09-21  Tomás: send the wiring plan to Ines\n" +
	"  2026-09-25  Pieter: confirm mounts fit the old bolts\n  2026-09-30  Mara: ask the port office for the night " +
	"permit\n\nstored 16 contacts in kb domain contacts\n" +
	"could not include /home/mara/private/salary.md: denied\ncould not include /etc/hostname: denied\n"

// small is a picture of no more than 120 colours: the most frequent ones, and
// for each other the nearest of them.
func small(t testing.TB, data []byte) []byte {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	bounds := img.Bounds()
	counts := map[color.RGBA]int{}
	coarse := func(x, y int) color.RGBA {
		r, g, b, _ := img.At(x, y).RGBA()
		return color.RGBA{uint8(r>>8) &^ 3, uint8(g>>8) &^ 3, uint8(b>>8) &^ 3, 255}
	}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[coarse(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(counts), func(a, b color.RGBA) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.R, b.R), cmp.Compare(a.G, b.G), cmp.Compare(a.B, b.B))
	})
	var palette color.Palette
	for _, c := range colours[:min(len(colours), 120)] {
		palette = append(palette, c)
	}
	nearest := map[color.RGBA]uint8{}
	for c := range counts {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[coarse(x, y)])
		}
	}
	var b bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
