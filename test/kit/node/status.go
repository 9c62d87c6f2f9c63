package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// status is what a kubelet would write.
func (p *pod) status() corev1.PodStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := corev1.PodStatus{
		Phase: corev1.PodPending, PodIP: p.is.Status.PodIP, PodIPs: p.is.Status.PodIPs, HostIP: Address,
		HostIPs: []corev1.HostIP{{IP: Address}}, StartTime: &p.is.CreationTimestamp,
	}
	if p.refused != "" {
		s.Phase, s.Reason, s.Message = corev1.PodFailed, "Refused", p.refused
		return s
	}
	initialized, ready, running, failed, ended := true, p.ending.Err() == nil, 0, 0, 0
	for _, c := range p.containers {
		is := c.status(p.why)
		if c.init {
			s.InitContainerStatuses = append(s.InitContainerStatuses, is)
			initialized = initialized && c.passed
			if c.lasts() {
				ready = ready && is.Ready
			}
			continue
		}
		s.ContainerStatuses = append(s.ContainerStatuses, is)
		ready = ready && is.Ready
		switch {
		case c.over && c.exit != 0:
			failed++
			ended++
		case c.over:
			ended++
		case !c.started.IsZero():
			running++
		}
	}
	switch {
	case ended == len(s.ContainerStatuses) && failed > 0:
		s.Phase = corev1.PodFailed
	case ended == len(s.ContainerStatuses):
		s.Phase = corev1.PodSucceeded
	case running+ended == len(s.ContainerStatuses) && initialized:
		s.Phase = corev1.PodRunning
	}
	for _, c := range []struct {
		kind corev1.PodConditionType
		is   bool
	}{
		{corev1.PodScheduled, true}, {corev1.PodInitialized, initialized}, {corev1.ContainersReady, ready && s.Phase == corev1.PodRunning},
		{corev1.PodReady, ready && s.Phase == corev1.PodRunning},
	} {
		s.Conditions = append(s.Conditions, p.condition(c.kind, c.is))
	}
	return s
}

// condition has the time at which it became so.
func (p *pod) condition(kind corev1.PodConditionType, is bool) corev1.PodCondition {
	c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: metav1.Now()}
	if is {
		c.Status = corev1.ConditionTrue
	}
	for i, old := range p.is.Status.Conditions {
		if old.Type == kind {
			if old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
			p.is.Status.Conditions[i] = c
			return c
		}
	}
	p.is.Status.Conditions = append(p.is.Status.Conditions, c)
	return c
}

// status of a container; why says why it hasn't started, if it hasn't.
func (c *container) status(why string) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: c.is.Name, Image: c.is.Image, ImageID: c.is.Image, RestartCount: c.restarts, Ready: c.ready, Started: new(c.up)}
	if c.passed && c.init && !c.lasts() {
		s.Ready = true
	}
	if c.last != nil {
		s.LastTerminationState.Terminated = c.last
	}
	switch {
	case c.waits != "":
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: c.waits, Message: c.message}
	case c.over:
		s.State.Terminated = c.terminated()
	case c.started.IsZero():
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: why}
	default:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.started)}
	}
	return s
}

func (c *container) terminated() *corev1.ContainerStateTerminated {
	reason := "Completed"
	if c.exit != 0 {
		reason = "Error"
	}
	return &corev1.ContainerStateTerminated{ExitCode: c.exit, Reason: reason, StartedAt: metav1.NewTime(c.started), FinishedAt: metav1.NewTime(time.Now())}
}
