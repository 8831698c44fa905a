// Right: the next value computed in one function.
module TopModule (
  input  logic       clk,
  input  logic       areset,
  input  logic       load,
  input  logic [7:0] value,
  input  logic       enable,
  input  logic       up,
  input  logic       wrap,
  input  logic [7:0] lo,
  input  logic [7:0] hi,
  output logic [7:0] count,
  output logic       at_limit
);

  function automatic [7:0] clamp(input [7:0] v, input [7:0] l, input [7:0] h);
    clamp = (v > h) ? h : (v < l) ? l : v;
  endfunction

  reg [7:0] next;

  always @* begin
    next = count;
    if (load) begin
      next = clamp(value, lo, hi);
    end else if (enable) begin
      case ({up, wrap})
        2'b11: next = (count < hi) ? count + 1 : lo;
        2'b10: next = (count < hi) ? count + 1 : hi;
        2'b01: next = (count > lo) ? count - 1 : hi;
        default: next = (count > lo) ? count - 1 : lo;
      endcase
    end
  end

  always @(posedge clk, posedge areset)
    if (areset) count <= 0;
    else        count <= next;

  assign at_limit = (up & ~(count < hi)) | (~up & ~(count > lo));

endmodule
