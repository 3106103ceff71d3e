{{- define "hikyaku.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "hikyaku.selector" -}}
app.kubernetes.io/name: hikyaku
app.kubernetes.io/instance: {{ include "hikyaku.name" . }}
{{- end -}}

{{- define "hikyaku.labels" -}}
{{ include "hikyaku.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end -}}

{{- define "hikyaku.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The relay needs no more than this. */ -}}
{{- define "hikyaku.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "hikyaku.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "hikyaku.healthPort" -}}
{{- required "config.admin.health_listen is needed for the probes: 0.0.0.0:8190" .Values.config.admin.health_listen | splitList ":" | last -}}
{{- end -}}
