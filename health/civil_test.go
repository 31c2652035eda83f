package health

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// zones are all IANA time zones that Go brings along.
func zones(t *testing.T) []*time.Location {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	z, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Skipf("Go's own zone data cannot be listed: %v", err)
	}
	defer z.Close()
	var out []*time.Location
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		if loc, err := time.LoadLocation(f.Name); err == nil {
			out = append(out, loc)
		}
	}
	return out
}

// TestCivilDaysInEveryZone: hour by hour, the local day never goes back, and
// ages grow by one a day, through every change of the clocks.
func TestCivilDaysInEveryZone(t *testing.T) {
	all := zones(t)
	if len(all) < 400 {
		t.Fatalf("only %d zones", len(all))
	}
	for _, loc := range all {
		start := time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)
		r := testRules(t, "layout: canonical\n")
		r.Location = loc
		first := civil(r.Day(start))
		last := first
		for h := range 366 * 24 {
			at := start.Add(time.Duration(h) * time.Hour)
			day := r.Day(at)
			if parsed, err := time.Parse(time.DateOnly, day); err != nil || int32(parsed.Unix()/86400) != civil(day) {
				t.Fatalf("%s: civil(%s) is %d", loc, day, civil(day))
			}
			if d := civil(day); d < last || d > last+1 {
				t.Fatalf("%s: %s is day %d after day %d", loc, at, d, last)
			} else {
				last = d
			}
		}
		if n := last - first; n < 365 || n > 366 {
			t.Fatalf("%s: the year has %d days", loc, n)
		}
	}
}

func TestCivilBeforeTheEpoch(t *testing.T) {
	for _, s := range []string{"0001-01-01", "1600-02-29", "1900-03-01", "1969-12-31", "1970-01-01", "2000-02-29", "9998-12-31"} {
		d, err := time.Parse(time.DateOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		want := d.Unix() / 86400
		if d.Unix() < 0 && d.Unix()%86400 != 0 {
			want--
		}
		if int64(civil(s)) != want {
			t.Errorf("civil(%s) is %d, want %d", s, civil(s), want)
		}
	}
}
