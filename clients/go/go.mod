module hikyaku.dev/outbox

go 1.23
