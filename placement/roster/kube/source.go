// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	typed "k8s.io/client-go/kubernetes/typed/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// source is what the reflector asks: the slices of one Service. It sees every
// failure, of which the reflector keeps some to itself.
type source struct {
	*Discovery
	api typed.EndpointSliceInterface
}

var (
	_ cache.ListerWatcher            = source{}
	_ cache.ListerWatcherWithContext = source{}
)

func (s source) selected(o metav1.ListOptions) metav1.ListOptions {
	o.LabelSelector = discoveryv1.LabelServiceName + "=" + s.cfg.Service
	return o
}

// ListWithContext implements [cache.ListerWatcherWithContext].
func (s source) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := s.api.List(ctx, s.selected(o))
	if err != nil {
		s.fail(err)
		return nil, err
	}
	return list, nil
}

// WatchWithContext implements [cache.ListerWatcherWithContext].
func (s source) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	stream, err := s.api.Watch(ctx, s.selected(o))
	if err != nil {
		s.fail(err)
		return nil, err
	}
	if o.SendInitialEvents == nil {
		// It goes on from where it was. One that begins with a list is as good as
		// that list, which comes by store.Replace.
		s.update(func(now time.Time, v *view) { v.restored(now) })
	}
	return stream, nil
}

// List implements [cache.ListerWatcher].
func (s source) List(o metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(s.ctx, o)
}

// Watch implements [cache.ListerWatcher].
func (s source) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(s.ctx, o)
}

// outage reports whether an error means that the slices may not be what they
// were. That a version is too old, or that a list cannot be streamed, is
// answered by another request at once.
func outage(err error) bool {
	return !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) && !apierrors.IsInvalid(err)
}

// explain says what an error is about.
func (d *Discovery) explain(err error) error {
	if request := new(url.Error); errors.As(err, &request) {
		err = request.Err // the address is long, and another for each request
	}
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w: in namespace %q: %w", ErrForbidden, d.cfg.Namespace, err)
	}
	return fmt.Errorf("kube: endpointslices of service %q in namespace %q: %w", d.cfg.Service, d.cfg.Namespace, err)
}

// store is what the reflector fills. A list comes as a whole, also after a
// version that was too old: nobody sees half of it.
type store struct{ *Discovery }

var _ cache.ReflectorStore = store{}

// Add implements [cache.ReflectorStore].
func (s store) Add(item any) error { return s.Update(item) }

// Update implements [cache.ReflectorStore].
func (s store) Update(item any) error {
	slice, err := sliceOf(item)
	if err == nil {
		s.update(func(now time.Time, v *view) { v.put(now, slice) })
	}
	return err
}

// Delete implements [cache.ReflectorStore].
func (s store) Delete(item any) error {
	slice, err := sliceOf(item)
	if err == nil {
		s.update(func(now time.Time, v *view) { v.drop(now, slice.Name) })
	}
	return err
}

// Replace implements [cache.ReflectorStore].
func (s store) Replace(items []any, _ string) error {
	list := make([]*discoveryv1.EndpointSlice, 0, len(items))
	for _, item := range items {
		slice, err := sliceOf(item)
		if err != nil {
			return err
		}
		list = append(list, slice)
	}
	s.update(func(now time.Time, v *view) { v.replace(now, list) })
	return nil
}

// Resync implements [cache.ReflectorStore].
func (store) Resync() error { return nil }

func sliceOf(item any) (*discoveryv1.EndpointSlice, error) {
	slice, ok := item.(*discoveryv1.EndpointSlice)
	if !ok {
		return nil, fmt.Errorf("kube: the API server sent a %T", item)
	}
	return slice, nil
}
