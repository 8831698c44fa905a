// Bench of vt023_round_robin_arbiter: round-robin arbiter with bounded hold.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_grant;
    int errortime_grant;
    int errors_busy;
    int errortime_busy;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic       reset;
  logic [3:0] req;
  wire  [3:0] grant_ref;
  wire  [3:0] grant_dut;
  wire        busy_ref;
  wire        busy_dut;

  RefModule good1 (
    .clk(clk),
    .reset(reset),
    .req(req),
    .grant(grant_ref),
    .busy(busy_ref)
  );

  TopModule top_module1 (
    .clk(clk),
    .reset(reset),
    .req(req),
    .grant(grant_dut),
    .busy(busy_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [3:0] open_grant = grant_ref ^ grant_ref;
  wire        match_grant = (grant_dut ^ open_grant) === (grant_ref ^ open_grant);
  wire        open_busy = busy_ref ^ busy_ref;
  wire        match_busy = (busy_dut ^ open_busy) === (busy_ref ^ open_busy);
  wire        tb_match = match_grant && match_busy;

  always @(posedge clk or negedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_grant) begin
      if (stats1.errors_grant == 0) stats1.errortime_grant = $time;
      stats1.errors_grant = stats1.errors_grant + 1;
    end
    if (!match_busy) begin
      if (stats1.errors_busy == 0) stats1.errortime_busy = $time;
      stats1.errors_busy = stats1.errors_busy + 1;
    end
  end

  integer i;
  reg [1:0] style;
  initial begin
    reset <= 1'b1;
    req <= 4'b1111;
    repeat (2) @(posedge clk);
    reset <= 1'b0;
    // Everybody asks all the time.
    repeat (36) @(posedge clk);
    // One owner alone for long, then a newcomer.
    for (i = 0; i < 8; i = i + 1) begin
      req <= 4'b0001 << (i & 3);
      repeat (i + 1) @(posedge clk);
      req <= (4'b0001 << (i & 3)) | (4'b0001 << ((i + 1 + i / 4) & 3));
      repeat (7) @(posedge clk);
      req <= 4'b0000;
      @(posedge clk);
    end
    // Short requests with pauses: the order goes on where it stopped.
    for (i = 0; i < 8; i = i + 1) begin
      req <= 4'b1111;
      @(posedge clk) req <= 4'b0000;
      repeat (2) @(posedge clk);
    end
    // Random requests: fast, sticky, crowded or sparse.
    repeat (36) begin
      style = $random;
      repeat (12) @(posedge clk) begin
        case (style)
          2'd0: req <= $random;
          2'd1: req <= req ^ ($random & $random & $random);
          2'd2: req <= $random | $random;
          default: req <= $random & $random;
        endcase
        reset <= ($urandom & 63) == 0;
      end
    end
    @(negedge clk);
    #1 $finish;
  end

  initial begin
    #200000;
    $display("TIMEOUT");
    $finish;
  end

  final begin
    if (stats1.errors_grant != 0)
      $display("Hint: Output 'grant' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_grant, stats1.errortime_grant);
    else
      $display("Hint: Output 'grant' has no mismatches.");
    if (stats1.errors_busy != 0)
      $display("Hint: Output 'busy' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_busy, stats1.errortime_busy);
    else
      $display("Hint: Output 'busy' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
