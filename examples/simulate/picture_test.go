// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/evenring/evenring/examples/simulate/internal/scale"
)

// drawn runs the program with -plot and returns the file.
func drawn(t *testing.T, name, args string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.Zero(t, run(append(strings.Fields(args), "-plot", file), io.Discard, io.Discard), args)
	return file
}

// colours counts those of the pixels that are not grey.
func colours(img image.Image) map[color.Color]int {
	all := map[color.Color]int{}
	for y := img.Bounds().Min.Y; y < img.Bounds().Max.Y; y++ {
		for x := img.Bounds().Min.X; x < img.Bounds().Max.X; x++ {
			c := img.At(x, y)
			if r, g, b, _ := c.RGBA(); r != g || g != b {
				all[c]++
			}
		}
	}
	return all
}

func TestPNG(t *testing.T) {
	for _, args := range []string{
		"-plan rolling -gateways 4 -supervisors 400",
		"-plan crash -gateways 40 -supervisors 4000",
		"-plan partition -gateways 2 -supervisors 1",
		"-grow -gateways 2,3 -supervisors 10,100",
	} {
		f, err := os.Open(drawn(t, "a.png", args))
		require.NoError(t, err)
		defer f.Close()
		img, err := png.Decode(f)
		require.NoError(t, err, args)
		require.Greater(t, img.Bounds().Dx(), 500)
		require.Greater(t, img.Bounds().Dy(), 500)
		require.NotEmpty(t, colours(img), args)
	}
}

func TestSVG(t *testing.T) {
	for args, want := range map[string]string{
		"-plan rolling -gateways 4 -supervisors 400":   "rolling: 400 supervisors on 4 gateways, with surge",
		"-plan rolling -gateways 11 -supervisors 2200": "rolling: 2200 supervisors on 11 gateways, with surge",
		"-plan burst -gateways 20 -supervisors 30000":  "fewest to most",
		"-grow -gateways 2,3 -supervisors 10,100":      "3 gateways",
	} {
		file := drawn(t, "a.svg", args)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(text), want)
		require.Less(t, len(text), 200_000)
		d := xml.NewDecoder(strings.NewReader(string(text)))
		root := ""
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if e, ok := token.(xml.StartElement); ok && root == "" {
				root = e.Name.Local
			}
		}
		require.Equal(t, "svg", root)
	}
}

// The line of a gateway that leaves ends at 0.
func TestLines(t *testing.T) {
	names, lines := linesOf([]scale.Sample{
		{Decisions: 1, Served: []scale.Served{{Gateway: "a", Count: 5}}},
		{Decisions: 2, Served: []scale.Served{{Gateway: "a", Count: 5}, {Gateway: "b"}}},
		{Decisions: 7, Served: []scale.Served{{Gateway: "b", Count: 5}}},
		{Decisions: 9, Served: []scale.Served{{Gateway: "b", Count: 5}}},
	})
	require.Equal(t, []string{"a", "b"}, names)
	require.Equal(t, 3, lines["a"].Len())
	x, y := lines["a"].XY(2)
	require.Equal(t, []float64{7, 0}, []float64{x, y})
	require.Equal(t, 3, lines["b"].Len())
}

// A picture that cannot be drawn is an error, and leaves no file behind.
func TestNoPicture(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.png")
	pic, err := newPicture(file)
	require.NoError(t, err)
	p := newPanel("this", "", "")
	p.fault = io.ErrUnexpectedEOF
	err = pic.draw([]*panel{p})
	require.EqualError(t, err, "this: unexpected EOF")
	require.Equal(t, err, pic.close(err))
	require.NoFileExists(t, file)
}
