// SPDX-License-Identifier: Apache-2.0

package child

import (
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenring/evenring/examples/internal/report"
)

// patience bounds what should happen soon. It is spent only by a test that fails.
const patience = 20 * time.Second

// roles are those of the test binary.
var roles = map[string]func(args []string) int{
	"gateway":    Gateway,
	"supervisor": Supervisors,
	"test-deaf": func([]string) int { // to SIGTERM
		signal.Ignore(syscall.SIGTERM)
		report.NewWriter(os.Stdout).Write(report.Event{Kind: report.Ready})
		select {}
	},
	"test-babbler": func([]string) int {
		report.NewWriter(os.Stdout).Write(report.Event{Kind: report.Ready})
		_, _ = os.Stdout.WriteString("no event\n" + strings.Repeat("more of it\n", 100_000))
		return 0
	},
}

func TestMain(m *testing.M) {
	Play("child", roles)
	goleak.VerifyTestMain(m)
}
