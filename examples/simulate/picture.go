// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // .png
	_ "gonum.org/v1/plot/vg/vgsvg" // .svg

	"github.com/evenring/evenring/examples/simulate/internal/scale"
)

// formats are the kinds of pictures, by extension.
var formats = []string{".png", ".svg"}

// picture is the file of -plot. nil draws nothing.
type picture struct{ file *os.File }

// newPicture opens the file before the work begins, so that a bad name is known at once.
func newPicture(name string) (*picture, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // a nil picture draws nothing
	}
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &picture{f}, nil
}

// close closes the file, and takes it away if there is an error, which it returns or else its own.
func (p *picture) close(err error) error {
	if p == nil {
		return err
	}
	if fault := p.file.Close(); err == nil {
		err = fault
	}
	if err != nil {
		_ = os.Remove(p.file.Name()) // it is of no use, and that is known already
	}
	return err
}

// panel is one plot of a picture; the fault is why it cannot be drawn.
type panel struct {
	*plot.Plot
	fault error
}

func newPanel(title, x, y string) *panel {
	p := &panel{Plot: plot.New()}
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	return p
}

// line draws a line; the name, if there is one, goes into the legend.
func (p *panel) line(name string, c color.Color, points plotter.XYs) {
	if len(points) == 0 || p.fault != nil {
		return
	}
	l, err := plotter.NewLine(points)
	if err != nil {
		p.fault = err
		return
	}
	l.Color = c
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
}

// band fills what is between two lines.
func (p *panel) band(name string, c color.Color, low, high plotter.XYs) {
	ring := append(plotter.XYs{}, low...)
	for i := range high {
		ring = append(ring, high[len(high)-1-i])
	}
	area, err := plotter.NewPolygon(ring)
	if err != nil {
		p.fault = err
		return
	}
	area.Color, area.Width = c, 0
	p.Add(area)
	p.Legend.Add(name, area)
}

// draw draws the panels one below the other.
func (p *picture) draw(panels []*panel) error {
	if p == nil {
		return nil
	}
	column := make([][]*plot.Plot, len(panels))
	for i, one := range panels {
		if one.fault != nil {
			return fmt.Errorf("%s: %w", one.Title.Text, one.fault)
		}
		column[i] = []*plot.Plot{one.Plot}
	}
	const width, height = 24 * vg.Centimeter, 9 * vg.Centimeter
	to, err := draw.NewFormattedCanvas(width, height*vg.Length(len(panels)), strings.TrimPrefix(filepath.Ext(p.file.Name()), "."))
	if err != nil {
		return err
	}
	page := draw.New(to)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	const margin = vg.Centimeter / 2
	for i, row := range plot.Align(column, draw.Tiles{
		Cols: 1, Rows: len(panels), PadY: margin, PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: margin,
	}, page) {
		column[i][0].Draw(row[0])
	}
	_, err = to.WriteTo(p.file)
	return err
}

// storyPanels draw what happened: whom the gateways served, the moves and the gap.
func storyPanels(r scale.Result) []*panel {
	served := newPanel(title(r.Config), "", "supervisors of a gateway")
	moves := newPanel("", "", "moves")
	gap := newPanel("", "decisions", "most minus fewest")
	of := func(value func(scale.Sample) float64) plotter.XYs {
		var all plotter.XYs
		for _, s := range r.Samples {
			all = append(all, plotter.XY{X: float64(s.Decisions), Y: value(s)})
		}
		return all
	}
	fewest := of(func(s scale.Sample) float64 { return float64(s.Fewest) })
	most := of(func(s scale.Sample) float64 { return float64(s.Most) })
	if r.Config.Gateways < scale.Lines {
		names, lines := linesOf(r.Samples)
		for i, name := range names {
			label := name
			if len(names) > scale.Lines {
				label = "" // there is no room for so many
			}
			served.line(label, plotutil.Color(i), lines[name])
		}
	} else {
		served.band("fewest to most", color.NRGBA{R: 120, G: 160, B: 210, A: 255}, fewest, most)
		served.line("mean", color.Black, of(func(s scale.Sample) float64 { return s.Mean }))
	}
	moves.line("", plotutil.Color(1), of(func(s scale.Sample) float64 { return float64(s.Moves) }))
	gap.line("", plotutil.Color(0), of(func(s scale.Sample) float64 { return float64(s.Most - s.Fewest) }))
	for _, p := range []*panel{served, moves, gap} {
		p.Y.Min, p.Y.Max = 0, max(1, p.Y.Max)
	}
	return []*panel{served, moves, gap}
}

// linesOf returns the line of each gateway, and their names in the order in which they come. Who leaves
// has handed everybody over.
func linesOf(samples []scale.Sample) (names []string, lines map[string]plotter.XYs) {
	lines = map[string]plotter.XYs{}
	here := map[string]bool{}
	for _, s := range samples {
		x, before := float64(s.Decisions), here
		here = map[string]bool{}
		for _, g := range s.Served {
			if lines[g.Gateway] == nil {
				names = append(names, g.Gateway)
			}
			lines[g.Gateway] = append(lines[g.Gateway], plotter.XY{X: x, Y: float64(g.Count)})
			here[g.Gateway] = true
		}
		for name := range before {
			if !here[name] {
				lines[name] = append(lines[name], plotter.XY{X: x})
			}
		}
	}
	return names, lines
}

// growthPanels draw how the cost grows with the supervisors, a line for each number of gateways.
func growthPanels(cfg config, all []scale.Result) []*panel {
	time := newPanel(fmt.Sprintf("%s: how the cost grows", cfg.plan), "", "ns for a decision")
	space := newPanel("", "supervisors", "bytes for a supervisor")
	for i, g := range cfg.gateways {
		var ns, bytes plotter.XYs
		for _, r := range all {
			if r.Config.Gateways == g {
				x := float64(r.Config.Supervisors)
				ns = append(ns, plotter.XY{X: x, Y: r.NanosecondsPerDecision()})
				bytes = append(bytes, plotter.XY{X: x, Y: max(1, r.BytesPerSupervisor())})
			}
		}
		name := fmt.Sprint(g, " gateways")
		time.line(name, plotutil.Color(i), ns)
		space.line(name, plotutil.Color(i), bytes)
	}
	time.Legend.Top = false // where no line is
	for _, p := range []*panel{time, space} {
		p.Legend.Left = false
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	time.Y.Min, time.Y.Max = 0, max(1, time.Y.Max)
	space.Y.Scale, space.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	return []*panel{time, space}
}
