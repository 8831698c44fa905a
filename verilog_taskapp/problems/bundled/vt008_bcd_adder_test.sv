// Bench of vt008_bcd_adder: Two-digit BCD adder.
`timescale 1ps/1ps

module tb;

  typedef struct packed {
    int errors;
    int errortime;
    int errors_sum;
    int errortime_sum;
    int errors_cout;
    int errortime_cout;
    int errors_invalid;
    int errortime_invalid;
    int clocks;
  } stats;

  stats stats1;

  reg clk = 0;
  always #5 clk = ~clk;

  logic [7:0] a;
  logic [7:0] b;
  logic       cin;
  wire  [7:0] sum_ref;
  wire  [7:0] sum_dut;
  wire        cout_ref;
  wire        cout_dut;
  wire        invalid_ref;
  wire        invalid_dut;

  RefModule good1 (
    .a(a),
    .b(b),
    .cin(cin),
    .sum(sum_ref),
    .cout(cout_ref),
    .invalid(invalid_ref)
  );

  TopModule top_module1 (
    .a(a),
    .b(b),
    .cin(cin),
    .sum(sum_dut),
    .cout(cout_dut),
    .invalid(invalid_dut)
  );

  // Where the reference is unknown anything goes; where the design alone is unknown it is wrong.
  wire  [7:0] open_sum = sum_ref ^ sum_ref;
  wire        match_sum = (sum_dut ^ open_sum) === (sum_ref ^ open_sum);
  wire        open_cout = cout_ref ^ cout_ref;
  wire        match_cout = (cout_dut ^ open_cout) === (cout_ref ^ open_cout);
  wire        open_invalid = invalid_ref ^ invalid_ref;
  wire        match_invalid = (invalid_dut ^ open_invalid) === (invalid_ref ^ open_invalid);
  wire        tb_match = match_sum && match_cout && match_invalid;

  always @(posedge clk) begin
    stats1.clocks = stats1.clocks + 1;
    if (!tb_match) begin
      if (stats1.errors == 0) stats1.errortime = $time;
      stats1.errors = stats1.errors + 1;
    end
    if (!match_sum) begin
      if (stats1.errors_sum == 0) stats1.errortime_sum = $time;
      stats1.errors_sum = stats1.errors_sum + 1;
    end
    if (!match_cout) begin
      if (stats1.errors_cout == 0) stats1.errortime_cout = $time;
      stats1.errors_cout = stats1.errors_cout + 1;
    end
    if (!match_invalid) begin
      if (stats1.errors_invalid == 0) stats1.errortime_invalid = $time;
      stats1.errors_invalid = stats1.errors_invalid + 1;
    end
  end

  integer i;
  initial begin
    a <= 8'h00;
    b <= 8'h00;
    cin <= 1'b0;
    // All pairs of units, with a tens digit that passes the carry on.
    for (i = 0; i < 200; i = i + 1) @(negedge clk) begin
      a <= {4'd4, 4'd0} + (i % 10);
      b <= {4'd5, 4'd0} + ((i / 10) % 10);
      cin <= (i >= 100);
    end
    repeat (300) @(negedge clk) begin
      a[3:0] <= $urandom % 10;
      a[7:4] <= $urandom % 10;
      b[3:0] <= $urandom % 10;
      b[7:4] <= $urandom % 10;
      cin <= $random;
    end
    // One digit out of range at a time, then anything.
    for (i = 0; i < 40; i = i + 1) @(negedge clk) begin
      a <= 8'h11;
      b <= 8'h11;
      cin <= $random;
      case (i & 3)
        0: a[3:0] <= 4'd9 + (i / 4) % 7;
        1: a[7:4] <= 4'd9 + (i / 4) % 7;
        2: b[3:0] <= 4'd9 + (i / 4) % 7;
        default: b[7:4] <= 4'd9 + (i / 4) % 7;
      endcase
    end
    repeat (100) @(negedge clk) begin
      a <= $random;
      b <= $random;
      cin <= $urandom;
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
    if (stats1.errors_sum != 0)
      $display("Hint: Output 'sum' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_sum, stats1.errortime_sum);
    else
      $display("Hint: Output 'sum' has no mismatches.");
    if (stats1.errors_cout != 0)
      $display("Hint: Output 'cout' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_cout, stats1.errortime_cout);
    else
      $display("Hint: Output 'cout' has no mismatches.");
    if (stats1.errors_invalid != 0)
      $display("Hint: Output 'invalid' has %0d mismatches. First mismatch occurred at time %0d.",
               stats1.errors_invalid, stats1.errortime_invalid);
    else
      $display("Hint: Output 'invalid' has no mismatches.");
    $display("Mismatches: %0d in %0d samples", stats1.errors, stats1.clocks);
  end

endmodule
