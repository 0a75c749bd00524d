package console

import (
	"bytes"
	"cmp"
	"context"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"runloop.dev/rlp/launcher"
)

// mostPicture bounds a picture of the docs.
const mostPicture = 64 << 10

// `make screenshots` has this test write the pictures of docs/console.md; else
// it looks that each can be made, and is small.
func TestScreenshots(t *testing.T) {
	s := newStage(t)
	b := open(t, s.handler)
	if b == nil {
		return
	}
	into := os.Getenv("RLP_SCREENSHOTS")
	under := s.submit(t, "repo_janitor")
	get(t, s.handler, "/ui/log/verify", map[string][]string{})
	take := func(name string, width, height int64, dark bool, show func()) {
		b.dark(dark)
		b.size(width, height)
		show()
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		defer cancel()
		data, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		if data = small(t, data); len(data) > mostPicture {
			t.Errorf("%s has %d bytes, more than %d", name, len(data), mostPicture)
		}
		if into != "" {
			if err := os.WriteFile(filepath.Join(into, name+".png"), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	page := func(path string) func() { return func() { b.visit(path) } }
	take("console", 1180, 720, false, func() {
		b.visit("/ui/runs")
		b.until("document.querySelector('[data-status]').textContent === 'Live'")
	})
	s.finish(t, under, &launcher.Report{})
	done := s.submit(t, "notes_digest")
	s.finish(t, done, &launcher.Report{Stdout: digestPrinted, Result: result(map[string]any{
		"notes": 14, "contacts": 16,
		"todos_open": 24, "problems": []string{"include: denied"},
	}), Lane: &launcher.Lane{Name: "wasm"}})
	s.log.retell(done, digestOfNotes())
	take("console-run", 1180, 760, false, page("/ui/runs/"+done))
	take("console-why", 1180, 720, false, page(whyLink(runID(0), s.log.seqOf(runID(0), "fs.write"))))
	take("console-policy", 1180, 760, true, func() {
		b.edited()
		b.do(chromedp.Evaluate[chromedp.Void]("scrollTo(0, document.getElementById('editor').getBoundingClientRect().top + " +
			"scrollY - 70)"))
	})
	take("console-audit", 1180, 640, true, page("/ui/audit?decision=deny"))
	take("console-phone", 390, 780, false, page("/ui/runs/"+done))
}

const digestPrinted = "14 notes (1 empty), 16 contacts, 24 open to-dos (5 done), 31 dates\n\nfirst deadlines\n  " +
	"2026-09-21  Tomás: send the wiring plan to Ines\n" +
	"  2026-09-25  Pieter: confirm mounts fit the old bolts\n  2026-09-30  Mara: ask the port office for the night " +
	"permit\n\nstored 16 contacts in kb domain contacts\n" +
	"could not include /home/mara/private/salary.md: denied\ncould not include /etc/hostname: denied\n"

// small is a picture of no more than 200 colours: the most frequent ones, and
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
	for _, c := range colours[:min(len(colours), 200)] {
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
