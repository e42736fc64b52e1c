// SPDX-License-Identifier: Apache-2.0

// Package child lets a program start itself again, as a process in another
// role: a fleet on one machine needs one program only.
package child
